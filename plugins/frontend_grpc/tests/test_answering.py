from __future__ import annotations

import asyncio

import numpy as np
import pytest

from tritonpy import Cancelled, DecoupledRefused, InferRequest, InferResponse, Internal, Tensor, TritonError
from tritonpy_frontend_grpc.answering import NO_DECOUPLED, AnswerSink
from tritonpy_protos.grpc_service_pb2 import ModelInferResponse

from .fake_engine import run


class Call:
    def __init__(self, over=False):
        self.over = over
        self.answers, self.first = 0, None


def answered_by(*pairs, end=None):
    """Let the loop deliver the responses to the calls; return what was ended with what."""
    ended = []

    async def scenario():
        sink = AnswerSink(asyncio.get_running_loop(), end or (lambda *each: ended.append(each)), Wrapped)
        for call, response in pairs:
            sink.put(InferRequest("m", {}, sink, tag=call), response)
        assert ended == []
        await asyncio.sleep(0.01)

    run(scenario)
    return ended


class Wrapped(TritonError):
    """What became of another error."""


def numbers(value):
    return InferResponse([Tensor.from_numpy("X", np.full((1, 2), value, np.int32))], "m", 1, "abc")


def test_each_call_ends_with_its_answer_in_their_order():
    calls = [Call() for _ in range(3)]
    ended = answered_by(*[(call, numbers(value)) for value, call in enumerate(calls)])
    assert [call for call, _ in ended] == calls
    for value, (_, answer) in enumerate(ended):
        message = ModelInferResponse.FromString(answer)
        assert (message.id, message.raw_output_contents[0]) == ("abc", np.full(2, value, np.int32).tobytes())


def test_calls_that_are_over_are_left_alone():
    call = Call()
    assert [each for each, _ in answered_by((Call(over=True), numbers(1)), (call, numbers(2)))] == [call]


@pytest.mark.parametrize(
    ("error", "text"), [(Internal("it broke"), "it broke"), (DecoupledRefused("a text of its own"), NO_DECOUPLED)]
)
def test_an_error_is_what_the_call_ends_with(error, text):
    ((_, answer),) = answered_by((Call(), InferResponse((), error=error)))
    assert isinstance(answer, TritonError)
    assert str(answer) == text


def test_an_answer_that_cannot_be_written_ends_its_own_call_alone():
    broken = numbers(1)
    broken.parameters = {"big": 2**70}
    calls = [Call(), Call(), Call()]
    ended = answered_by(*zip(calls, [numbers(0), broken, numbers(2)], strict=True))
    assert [type(answer) for _, answer in ended] == [bytes, Wrapped, bytes]
    assert "does not fit 64 bits" in str(ended[1][1])


def test_who_raises_when_a_call_ends_keeps_no_other_from_its_answer():
    seen = []

    def end(call, _answer):
        seen.append(call)
        if len(seen) == 1:
            raise Cancelled("a bug")

    calls = [Call(), Call()]

    async def scenario():
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda *_: None)
        sink = AnswerSink(loop, end, Wrapped)
        for call in calls:
            sink.put(InferRequest("m", {}, sink, tag=call), numbers(1))
        await asyncio.sleep(0.01)

    run(scenario)
    assert seen == calls


def sent_by_a_sender(*values):
    """Return the responses of a response sender, of which none is final, and its empty final one."""
    responses = [numbers(value) for value in values]
    for response in responses:
        response.final = False
    return [*responses, InferResponse((), "m", 1, "abc", empty=True)]


def test_a_call_ends_with_its_one_answer_when_the_final_one_is_empty():
    call = Call()
    ((_, answer),) = answered_by(*[(call, each) for each in sent_by_a_sender(7)])
    assert ModelInferResponse.FromString(answer).raw_output_contents[0] == np.full(2, 7, np.int32).tobytes()


@pytest.mark.parametrize("last", [numbers(3), InferResponse((), error=Internal("no second one"))])
def test_a_call_that_is_answered_twice_ends_with_an_error(last):
    call = Call()
    first, _ = sent_by_a_sender(1)
    ((_, answer),) = answered_by((call, first), (call, last))
    assert isinstance(answer, Wrapped)
    assert str(answer) == "expected a single response, got 2"
