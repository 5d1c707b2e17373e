from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy import CallbackSink, Cancelled, InferResponse, Internal, InvalidArgument, StreamSink, Tensor, TritonError
from tritonpy_frontend_grpc.deadline import DeadlineExceeded
from tritonpy_frontend_grpc.decode import decode_request
from tritonpy_frontend_grpc.parameters import wants_empty_final
from tritonpy_frontend_grpc.stream import Slot, Stream, Window
from tritonpy_protos.grpc_service_pb2 import InferParameter, ModelInferRequest, ModelStreamInferResponse

from .fake_engine import FakeEngine, number

SINK = CallbackSink(print)
ASKED = {"triton_enable_empty_final_response": InferParameter(bool_param=True)}


class DirectSink(StreamSink):
    """Delivers in the thread that answers."""

    def __init__(self, answered):
        super().__init__(None, lambda request, response: answered(request.tag, response))

    def _wake(self):
        self._drain()


class Talk:
    """A stream with an engine behind it."""

    def __init__(self, limit=2, ends_on_error=False, deadline_ns=0):
        self.engine = FakeEngine()
        self.changes = 0
        self.stream = Stream(Window(limit, 1000), ends_on_error, self.change, deadline_ns)
        self.producers = DirectSink(self.stream.answered)

    def change(self):
        self.changes += 1

    def ask(self, model, request_id="", **fields):
        message = ModelInferRequest(model_name=model, id=request_id, **fields)
        slot = Slot(self.stream)
        slot.describe(message.id, message.model_name, message.model_version, wants_empty_final(message.parameters))
        try:
            self.stream.take(slot, decode_request(message, SINK), self.engine, self.producers)
        except TritonError as error:
            self.stream.refused(slot, error)
        return slot

    def answer(self, slot, response):
        if slot.in_turn:
            self.stream.answered(slot, response)
        else:
            slot.request.sink.put(slot.request, response)

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


def test_the_first_error_of_a_model_ends_the_call_where_the_client_wants_that():
    talk = Talk(ends_on_error=True)
    talk.ask("later", "never answered")
    slot = talk.ask("later")
    talk.answer(slot, InferResponse.failed(slot.request, Internal("no")))
    (error,) = talk.sent()
    assert isinstance(error, Internal)


@pytest.mark.parametrize("here", [True, False])
def test_a_request_that_is_cancelled_at_its_deadline_ends_the_call(here):
    talk = Talk(deadline_ns=1)
    slot = talk.ask("later")
    slot.request.cancelled = here  # else by an engine in another process
    talk.answer(slot, InferResponse.failed(slot.request, Cancelled("Request cancelled")))
    (error,) = talk.sent()
    assert isinstance(error, DeadlineExceeded)


def test_a_request_that_is_cancelled_before_its_deadline_is_told_so():
    talk = Talk(deadline_ns=2**62)
    slot = talk.ask("later")
    slot.request.cancel()
    talk.answer(slot, InferResponse.failed(slot.request, Cancelled("Request cancelled")))
    (message,) = talk.sent()
    assert message.error_message == "Request cancelled"


def test_a_refusal_is_a_message_even_where_errors_end_the_call():
    talk = Talk(ends_on_error=True)
    talk.ask("unknown", "refused")
    (message,) = talk.sent()
    assert (message.infer_response.id, bool(message.error_message)) == ("refused", True)


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
        assert slot.room.ready
        talk.answer(slot, number(slot.request, value))
    assert not slot.room.ready
    assert other.room.ready
    assert talk.stream.unsent_bytes > 0
    freed = []
    slot.request.sink.when_ready(slot.request, lambda: freed.append(slot.room.answers))
    talk.sent()
    assert freed == [1]
    assert slot.room.ready
    assert talk.stream.unsent_bytes == 0


def test_large_answers_use_the_room_up_before_many_small_ones_do():
    talk = Talk(limit=100)
    slot = talk.ask("decoupled")
    answer = InferResponse([Tensor.from_numpy("OUT", np.zeros(1000, np.uint8))], "decoupled", 1, final=False)
    talk.answer(slot, answer)
    assert not slot.room.ready
    talk.sent()
    assert slot.room.ready


def test_answers_that_are_not_sent_leave_the_room_too():
    talk = Talk(limit=1)
    slot = talk.ask("decoupled")
    talk.answer(slot, InferResponse((), "decoupled", 1, final=False, empty=True))
    assert slot.room.answers == 0


def test_a_request_that_is_refused_as_decoupled_too_is_answered():
    talk = Talk()
    talk.engine.refused = InvalidArgument("not like this")
    slot = talk.ask("decoupled")
    (message,) = talk.sent()
    assert message.error_message == "not like this"
    assert slot.room is None


def test_who_leaves_cancels_what_is_open_and_holds_nobody():
    talk = Talk(limit=1)
    slot, done = talk.ask("decoupled"), talk.ask("later")
    answered = done.request
    talk.answer(done, number(answered, 1, final=True))
    talk.answer(slot, number(slot.request, 1))
    talk.sent()
    talk.stream.abandon()
    assert slot.request.cancelled
    assert not answered.cancelled
    for value in range(3):
        talk.answer(slot, number(slot.request, value))
        assert slot.room.ready
    assert talk.sent() == []


def test_whoever_sends_is_told_of_each_answer():
    talk = Talk()
    slot = talk.ask("decoupled")
    before = talk.changes
    talk.answer(slot, InferResponse((), "decoupled", 1, empty=True))
    assert talk.changes == before + 1


@pytest.mark.parametrize("ends_on_error", [False, True])
def test_a_model_that_answers_once_and_fails_to_answer_again_has_its_first_answer_sent_alone(ends_on_error):
    talk = Talk(ends_on_error=ends_on_error)
    slot, asked = talk.ask("later", "a"), talk.ask("later", "b", parameters=ASKED)
    for each in (slot, asked):
        talk.answer(each, number(each.request, 1))
        talk.answer(each, InferResponse((), "later", 1, each.id, error=Internal("no second one")))
    messages = talk.sent()
    assert [(message.infer_response.id, message.error_message) for message in messages] == [
        ("a", ""),
        ("b", ""),
        ("b", ""),
    ]
    assert messages[2].infer_response.parameters["triton_final_response"].bool_param
    assert talk.stream.idle
