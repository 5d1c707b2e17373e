from __future__ import annotations

import grpc
import pytest

from tritonpy import now_ns
from tritonpy_frontend_grpc.deadline import deadline_of
from tritonpy_protos import METHODS

from .fake_engine import FakeEngine, eventually, run, serving
from .test_stream_call import STREAM, asked

INFER = next(method for method in METHODS if method.name == "ModelInfer")
SECOND_NS = 10**9


class Context:
    def __init__(self, left_s):
        self._left_s = left_s

    def time_remaining(self):
        return self._left_s


def test_a_call_without_a_deadline_has_none():
    assert deadline_of(Context(None)) == 0


@pytest.mark.parametrize(("left_s", "least", "most"), [(2.0, 2, 3), (0.0, 0, 1), (-1.0, 0, 1)])
def test_the_deadline_is_on_the_servers_clock(left_s, least, most):
    before = now_ns()
    assert before + least * SECOND_NS <= deadline_of(Context(left_s)) <= now_ns() + most * SECOND_NS


def test_a_request_knows_the_deadline_of_its_call_and_is_cancelled_when_it_passes():
    async def scenario():
        engine = FakeEngine()
        async with serving(engine) as frontend, grpc.aio.insecure_channel(frontend.address()) as channel:
            infer = channel.unary_unary(INFER.path, INFER.request.SerializeToString)
            stream = channel.stream_stream(STREAM.path, STREAM.request.SerializeToString)
            unary, streamed = infer(asked("later"), timeout=3), stream(timeout=3)
            await streamed.write(asked("decoupled"))
            without = infer(asked("later", "free"))
            await eventually(lambda: len(engine.held) == 3)
            bound = [request for request in engine.held if request.id != "free"]
            assert all(0 < request.deadline_ns <= now_ns() + 3 * SECOND_NS for request in bound)
            (free,) = [request for request in engine.held if request.id == "free"]
            assert free.deadline_ns == 0
            await eventually(lambda: all(request.cancelled for request in bound))
            assert await unary.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            assert await streamed.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            assert not free.cancelled
            without.cancel()

    run(scenario)
