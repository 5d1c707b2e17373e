from __future__ import annotations

import grpc

from tritonpy import now_ns
from tritonpy_protos import METHODS

from .fake_engine import FakeEngine, eventually, run, serving
from .test_stream_call import STREAM, asked

INFER = next(method for method in METHODS if method.name == "ModelInfer")
SECOND_NS = 10**9


def test_a_request_knows_the_deadline_of_its_call_and_is_cancelled_when_it_passes():
    async def scenario():
        engine = FakeEngine()
        async with serving(engine) as frontend, grpc.aio.insecure_channel(frontend.address()) as channel:
            await channel.channel_ready()  # the time to connect is not that of the calls
            infer = channel.unary_unary(INFER.path, INFER.request.SerializeToString)
            stream = channel.stream_stream(STREAM.path, STREAM.request.SerializeToString)
            unary, streamed = infer(asked("later"), timeout=5), stream(timeout=5)
            await streamed.write(asked("decoupled"))
            without = infer(asked("later", "free"))
            await eventually(lambda: len(engine.held) == 3)
            bound = [request for request in engine.held if request.id != "free"]
            # what a client's timeout becomes on the wire is rounded up: by hundredths of a second, for some seconds
            assert all(0 < request.deadline_ns <= now_ns() + 5.05 * SECOND_NS for request in bound)
            (free,) = [request for request in engine.held if request.id == "free"]
            assert free.deadline_ns == 0
            await eventually(lambda: all(request.cancelled for request in bound))
            assert await unary.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            assert await streamed.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            assert not free.cancelled
            without.cancel()

    run(scenario)
