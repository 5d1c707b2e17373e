from __future__ import annotations

import asyncio

import pytest

from tritonpy import Internal, now_ns
from tritonpy_frontend_grpc.aio_call import AioCall, AioInferCall

SECOND_NS = 10**9


class Context:
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
    assert AioCall(Context(None)).deadline_ns() == 0


@pytest.mark.parametrize(("left_s", "least", "most"), [(2.0, 2, 3), (0.0, 0, 1), (-1.0, 0, 1)])
def test_the_deadline_is_on_the_servers_clock(left_s, least, most):
    before = now_ns()
    assert before + least * SECOND_NS <= AioCall(Context(left_s)).deadline_ns() <= now_ns() + most * SECOND_NS


@pytest.mark.parametrize("metadata", [None, (("key", "value"),)])
def test_a_call_has_the_metadata_of_its_client(metadata):
    assert AioCall(Context(metadata=metadata)).metadata() == (metadata or ())


def test_who_wants_to_know_hears_of_the_end_of_a_call():
    context, heard = Context(), []
    AioCall(context).when_done(lambda: heard.append("done"))
    (callback,) = context.callbacks
    callback(context)
    assert heard == ["done"]


@pytest.mark.parametrize("answer", [b"message", Internal("no")])
def test_the_answer_of_an_inference_is_what_its_task_waits_for(answer):
    async def scenario():
        call = AioInferCall(Context(), asyncio.get_running_loop().create_future())
        call.finish(answer)
        assert await call.outcome is answer

    asyncio.run(scenario())


def test_an_answer_that_nobody_waits_for_is_dropped():
    async def scenario():
        call = AioInferCall(Context(), asyncio.get_running_loop().create_future())
        call.outcome.cancel()
        call.finish(b"too late")
        assert call.outcome.cancelled()

    asyncio.run(scenario())
