from __future__ import annotations

import asyncio
import logging

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


async def in_one_turn(server, said):
    """Let streams bring what is said of them in one turn; return for how many that was enough to hand them over with the one before."""
    service, joined, over = server.serving.service, [], asyncio.Event()
    join = service.together.join
    service.together.join = lambda *arguments: joined.append(join(*arguments)) or joined[-1]
    server.loop.call_soon(service.together.begin)
    for stream, body in said:
        stream.feed(body)
    server.loop.call_soon(service.together.end)
    server.loop.call_soon(over.set)
    await over.wait()
    return sum(joined)


def ask_together(serve):
    """Ask six times in one turn, once with too little at first; return how many joined others, and the status and numbers of each answer."""
    seen = []

    async def scenario():
        server = serve()
        for _ in range(3):  # their like is known from then on
            await server.stream("ModelInfer", asked()).outcome()
        streams = [server.stream("ModelInfer", body=b"", ended=False) for _ in range(6)]
        bodies = [frame(asked(data=bytes([number] * 4))) for number in range(6)]
        rest, bodies[2] = bodies[2][7:], bodies[2][:7]
        seen.append(await in_one_turn(server, [*zip(streams, bodies, strict=True)]))
        streams[2].feed(rest, ended=True)
        for stream in streams:
            status, _, (message,) = await stream.outcome()
            seen.append((status, answered(message)[1]))
        assert server.at_rest()

    run(scenario)
    return seen


def test_calls_of_one_turn_get_their_own_answers(serve):
    joined, *outcomes = ask_together(serve)
    assert joined == 4  # all but the first and the one that was not whole
    assert outcomes == [(0, [number] * 4) for number in range(6)]


def test_calls_of_one_turn_are_all_told(serve, caplog):
    caplog.set_level(logging.DEBUG, "tritonpy.grpc")
    _, *outcomes = ask_together(serve)
    assert outcomes == [(0, [number] * 4) for number in range(6)]
    assert [record.model for record in caplog.records if "ModelInfer: OK" in record.message] == ["identity"] * 9
