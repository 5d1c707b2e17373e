from __future__ import annotations

import grpc

from tritonpy import now_ns
from tritonpy_protos import METHODS

from .fake_engine import FakeEngine, eventually, run, serving
from .test_stream_call import STREAM, infer_request

INFER = next(method for method in METHODS if method.name == "ModelInfer")
SECOND_NS = 10**9


def test_a_request_is_cancelled_at_the_deadline_of_its_call():
    async def scenario():
        engine = FakeEngine()
        async with (
            serving(engine) as frontend,
            grpc.aio.insecure_channel(frontend.address()) as channel,
        ):
            await channel.channel_ready()  # connecting must not count for the deadlines
            infer = channel.unary_unary(INFER.path, INFER.request.SerializeToString)
            stream = channel.stream_stream(STREAM.path, STREAM.request.SerializeToString)
            unary, streamed = infer(infer_request("later"), timeout=5), stream(timeout=5)
            await streamed.write(infer_request("decoupled"))
            without = infer(infer_request("later", "free"))
            await eventually(lambda: len(engine.held) == 3)
            bound = [request for request in engine.held if request.id != "free"]
            # clients round timeouts up: by up to 0.05 s for a few seconds
            assert all(0 < request.deadline_ns <= now_ns() + 5.05 * SECOND_NS for request in bound)
            (free,) = [request for request in engine.held if request.id == "free"]
            assert free.deadline_ns == 0
            await eventually(lambda: all(request.cancelled for request in bound))
            assert await unary.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            assert await streamed.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            assert not free.cancelled
            without.cancel()

    run(scenario)
