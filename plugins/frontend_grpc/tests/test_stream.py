from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy import CallbackSink, InferResponse, Internal, InvalidArgument, TritonError
from tritonpy_frontend_grpc.decode import decode_request
from tritonpy_frontend_grpc.stream import Slot, Stream
from tritonpy_protos.grpc_service_pb2 import InferParameter, ModelInferRequest, ModelStreamInferResponse

from .fake_engine import FakeEngine, number

SINK = CallbackSink(print)
ASKED = {"triton_enable_empty_final_response": InferParameter(bool_param=True)}


class Talk:
    """A stream with an engine behind it."""

    def __init__(self, limit=2, ends_on_error=False):
        self.engine = FakeEngine()
        self.changes = 0
        self.stream = Stream(limit, ends_on_error, self.change)

    def change(self):
        self.changes += 1

    def ask(self, model, request_id="", **fields):
        message = ModelInferRequest(model_name=model, id=request_id, **fields)
        slot = Slot(self.stream)
        slot.describe(message)
        try:
            self.stream.take(slot, decode_request(message, SINK), self.engine)
        except TritonError as error:
            self.stream.refused(slot, error)
        return slot

    def answer(self, slot, response):
        slot.put_in += 1
        self.stream.answered(slot, response)

    def sent(self):
        found = []
        while (outgoing := self.stream.next()) is not None:
            found.append(
                outgoing.item
                if isinstance(outgoing.item, TritonError)
                else ModelStreamInferResponse.FromString(outgoing.item)
            )
            self.stream.sent(outgoing)
        return found

    def ids(self):
        return [message.infer_response.id for message in self.sent()]


@given(st.permutations(range(5)))
def test_answers_leave_in_the_order_of_the_requests(order):
    talk = Talk()
    slots = [talk.ask("later", str(at)) for at in range(5)]
    for at in order:
        talk.answer(slots[at], number(slots[at].request, at, final=True))
    assert talk.ids() == ["0", "1", "2", "3", "4"]
    assert talk.stream.idle


def test_a_decoupled_model_answers_when_it_likes():
    talk = Talk()
    waiting, decoupled = talk.ask("later", "a"), talk.ask("decoupled", "b")
    talk.answer(decoupled, number(decoupled.request, 1))
    talk.answer(decoupled, number(decoupled.request, 2, final=True))
    assert talk.ids() == ["b", "b"]
    assert not talk.stream.idle
    talk.answer(waiting, number(waiting.request, 3, final=True))
    assert talk.ids() == ["a"]


def test_an_empty_final_answer_is_sent_only_where_it_was_asked_for():
    talk = Talk()
    quiet, asked = talk.ask("decoupled", "q"), talk.ask("decoupled", "a", parameters=ASKED)
    for slot in (quiet, asked):
        talk.answer(slot, InferResponse((), "decoupled", 1, slot.id, empty=True))
    (message,) = talk.sent()
    assert message.infer_response.id == "a"
    assert message.infer_response.parameters["triton_final_response"].bool_param
    assert talk.stream.idle


def test_a_refusal_waits_for_its_turn():
    talk = Talk()
    slot = talk.ask("later", "1")
    talk.ask("unknown", "2")
    assert talk.sent() == []
    talk.answer(slot, number(slot.request, 1, final=True))
    first, second = talk.sent()
    assert first.infer_response.id == "1"
    assert (second.infer_response.id, second.error_message) == (
        "2",
        "Request for unknown model: 'unknown' is not found",
    )


def test_an_error_of_the_model_is_a_message():
    talk = Talk()
    slot = talk.ask("later", "1")
    talk.answer(slot, InferResponse.failed(slot.request, Internal("no")))
    (message,) = talk.sent()
    assert (message.error_message, message.infer_response.model_name) == ("no", "later")


@pytest.mark.parametrize("model", ["unknown", "later"])
def test_the_first_error_ends_the_call_where_the_client_wants_that(model):
    talk = Talk(ends_on_error=True)
    talk.ask("later", "never answered")
    slot = talk.ask(model)
    if slot.request is not None:
        talk.answer(slot, InferResponse.failed(slot.request, Internal("no")))
    (error,) = talk.sent()
    assert isinstance(error, Internal if model == "later" else InvalidArgument)


def test_an_answer_that_cannot_be_sent_becomes_an_error():
    talk = Talk()
    slot = talk.ask("later")
    talk.answer(slot, InferResponse((), "later", 1, parameters={"x": 2**70}))
    (message,) = talk.sent()
    assert "the response can not be sent: response parameter 'x'" in message.error_message
    assert talk.stream.idle


def test_a_producer_is_held_while_the_client_does_not_fetch():
    talk = Talk(limit=2)
    slot, other = talk.ask("decoupled"), talk.ask("decoupled")
    for value in range(2):
        assert talk.stream.has_room(slot)
        talk.answer(slot, number(slot.request, value))
    assert not talk.stream.has_room(slot)
    assert talk.stream.has_room(other)
    assert talk.stream.unsent_bytes > 0
    talk.sent()
    assert talk.stream.has_room(slot)
    assert talk.stream.unsent_bytes == 0


def test_who_leaves_cancels_what_is_open_and_holds_nobody():
    talk = Talk(limit=1)
    slot, done = talk.ask("decoupled"), talk.ask("later")
    talk.answer(done, number(done.request, 1, final=True))
    talk.answer(slot, number(slot.request, 1))
    talk.sent()
    talk.stream.abandon()
    assert slot.request.cancelled
    assert not done.request.cancelled
    for value in range(3):
        talk.answer(slot, number(slot.request, value))
        assert talk.stream.has_room(slot)
    assert talk.sent() == []


def test_whoever_sends_is_told_of_each_answer():
    talk = Talk()
    slot = talk.ask("decoupled")
    before = talk.changes
    talk.answer(slot, InferResponse((), "decoupled", 1, empty=True))
    assert talk.changes == before + 1
