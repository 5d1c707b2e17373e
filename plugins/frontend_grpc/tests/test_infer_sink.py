from __future__ import annotations

import asyncio

import numpy as np
import pytest

from tritonpy import (
    Cancelled,
    DecoupledRefused,
    InferRequest,
    InferResponse,
    Internal,
    Tensor,
    TritonError,
)
from tritonpy_frontend_grpc.infer_sink import DECOUPLED_UNSUPPORTED, InferResponseSink
from tritonpy_protos.grpc_service_pb2 import ModelInferResponse

from .fake_engine import run


class FakeCall:
    def __init__(self, over=False):
        self.over = over
        self.responses, self.first_response = 0, None


def deliver(*pairs, end=None):
    """Deliver the responses on the event loop; return pairs of ended call and result."""
    ended = []

    async def scenario():
        sink = InferResponseSink(
            asyncio.get_running_loop(), end or (lambda *each: ended.append(each)), WrappedError
        )
        for call, response in pairs:
            sink.put(InferRequest("m", {}, sink, tag=call), response)
        assert ended == []
        await asyncio.sleep(0.01)

    run(scenario)
    return ended


class WrappedError(TritonError):
    """Wraps another error."""


def numbers(value):
    return InferResponse([Tensor.from_numpy("X", np.full((1, 2), value, np.int32))], "m", 1, "abc")


def test_calls_end_with_their_responses_in_order():
    calls = [FakeCall() for _ in range(3)]
    ended = deliver(*[(call, numbers(value)) for value, call in enumerate(calls)])
    assert [call for call, _ in ended] == calls
    for value, (_, answer) in enumerate(ended):
        message = ModelInferResponse.FromString(answer)
        assert (message.id, message.raw_output_contents[0]) == (
            "abc",
            np.full(2, value, np.int32).tobytes(),
        )


def test_ended_calls_are_skipped():
    call = FakeCall()
    assert [each for each, _ in deliver((FakeCall(over=True), numbers(1)), (call, numbers(2)))] == [
        call
    ]


@pytest.mark.parametrize(
    ("error", "text"),
    [(Internal("it broke"), "it broke"), (DecoupledRefused("another text"), DECOUPLED_UNSUPPORTED)],
)
def test_an_error_is_what_the_call_ends_with(error, text):
    ((_, answer),) = deliver((FakeCall(), InferResponse((), error=error)))
    assert isinstance(answer, TritonError)
    assert str(answer) == text


def test_an_encoding_error_ends_only_its_own_call():
    broken = numbers(1)
    broken.parameters = {"big": 2**70}
    calls = [FakeCall(), FakeCall(), FakeCall()]
    ended = deliver(*zip(calls, [numbers(0), broken, numbers(2)], strict=True))
    assert [type(answer) for _, answer in ended] == [bytes, WrappedError, bytes]
    assert "does not fit 64 bits" in str(ended[1][1])


def test_an_exception_in_end_does_not_affect_other_calls():
    seen = []

    def end(call, _answer):
        seen.append(call)
        if len(seen) == 1:
            raise Cancelled("a bug")

    calls = [FakeCall(), FakeCall()]

    async def scenario():
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda *_: None)
        sink = InferResponseSink(loop, end, WrappedError)
        for call in calls:
            sink.put(InferRequest("m", {}, sink, tag=call), numbers(1))
        await asyncio.sleep(0.01)

    run(scenario)
    assert seen == calls


def sent_by_a_sender(*values):
    """Return non-final responses of a response sender and an empty final one."""
    responses = [numbers(value) for value in values]
    for response in responses:
        response.final = False
    return [*responses, InferResponse((), "m", 1, "abc", empty=True)]


def test_a_call_ends_with_its_only_response_and_an_empty_final_one():
    call = FakeCall()
    ((_, answer),) = deliver(*[(call, each) for each in sent_by_a_sender(7)])
    assert (
        ModelInferResponse.FromString(answer).raw_output_contents[0]
        == np.full(2, 7, np.int32).tobytes()
    )


@pytest.mark.parametrize("last", [numbers(3), InferResponse((), error=Internal("no second one"))])
def test_two_responses_end_the_call_with_an_error(last):
    call = FakeCall()
    first_response, _ = sent_by_a_sender(1)
    ((_, answer),) = deliver((call, first_response), (call, last))
    assert isinstance(answer, WrappedError)
    assert str(answer) == "expected a single response, got 2"
