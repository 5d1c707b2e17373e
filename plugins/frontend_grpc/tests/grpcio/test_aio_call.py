from __future__ import annotations

import asyncio

import pytest

from tritonpy import Internal, now_ns
from tritonpy_frontend_grpc.grpcio.aio_call import AioCall, AioInferCall

SECOND_NS = 10**9


class FakeContext:
    def __init__(self, left_s=None, metadata=None):
        self._left_s = left_s
        self._metadata = metadata
        self.callbacks = []

    def invocation_metadata(self):
        return self._metadata

    def add_done_callback(self, callback):
        self.callbacks.append(callback)

    def time_remaining(self):
        return self._left_s


def test_a_call_without_a_deadline_has_none():
    assert AioCall(FakeContext(None)).deadline_ns() == 0


@pytest.mark.parametrize(("left_s", "least", "most"), [(2.0, 2, 3), (0.0, 0, 1), (-1.0, 0, 1)])
def test_the_deadline_is_on_the_servers_clock(left_s, least, most):
    before = now_ns()
    assert (
        before + least * SECOND_NS
        <= AioCall(FakeContext(left_s)).deadline_ns()
        <= now_ns() + most * SECOND_NS
    )


@pytest.mark.parametrize("metadata", [None, (("key", "value"),)])
def test_a_call_has_the_metadata_of_its_client(metadata):
    assert AioCall(FakeContext(metadata=metadata)).metadata() == (metadata or ())


def test_the_callback_runs_when_the_call_ends():
    context, done = FakeContext(), []
    AioCall(context).when_done(lambda: done.append("done"))
    (callback,) = context.callbacks
    callback(context)
    assert done == ["done"]


@pytest.mark.parametrize("answer", [b"message", Internal("no")])
def test_finish_sets_the_outcome_of_an_inference_call(answer):
    async def scenario():
        call = AioInferCall(FakeContext(), asyncio.get_running_loop().create_future())
        call.finish(answer)
        assert await call.outcome is answer

    asyncio.run(scenario())


def test_a_response_after_cancellation_is_dropped():
    async def scenario():
        call = AioInferCall(FakeContext(), asyncio.get_running_loop().create_future())
        call.outcome.cancel()
        call.finish(b"too late")
        assert call.outcome.cancelled()

    asyncio.run(scenario())
