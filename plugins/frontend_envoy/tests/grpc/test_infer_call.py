from __future__ import annotations

from plugins.frontend_grpc.tests.fake_engine import eventually, run
from plugins.frontend_grpc.tests.wire.scenarios.frames import frame
from plugins.frontend_grpc.tests.wire.scenarios.infer_call import *  # noqa: F403
from plugins.frontend_grpc.tests.wire.scenarios.messages import answered, asked
from tritonpy_frontend_envoy.embedded.reception import MUCH


def test_a_large_message_is_asked_for_in_large_parts(serve):
    async def scenario():
        data = bytes(range(256)) * (2 * MUCH // 256)
        body = frame(asked(data=data))
        stream = serve().stream("ModelInfer", body=body[:1000], ended=False)
        await eventually(lambda: not stream.asked)  # the first part was taken, and nothing more asked for yet
        await eventually(lambda: stream.asked)
        stream.feed(body[1000:-10])
        await eventually(lambda: stream.asked)  # little is missing
        stream.feed(body[-10:], ended=True)
        status, _, (message,) = await stream.outcome()
        assert status == 0
        assert answered(message) == ("", list(data))

    run(scenario)
