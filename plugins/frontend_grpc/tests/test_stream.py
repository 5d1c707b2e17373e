from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy import (
    CallbackSink,
    Cancelled,
    InferResponse,
    Internal,
    InvalidArgument,
    Tensor,
    TritonError,
)
from tritonpy.frontend import StreamSink
from tritonpy_frontend_grpc.deadline import DeadlineExceeded
from tritonpy_frontend_grpc.decode import decode_request
from tritonpy_frontend_grpc.parameters import wants_empty_final
from tritonpy_frontend_grpc.stream import InferStream, ResponseWindow, StreamEntry
from tritonpy_protos.grpc_service_pb2 import (
    InferParameter,
    ModelInferRequest,
    ModelStreamInferResponse,
)

from .fake_engine import FakeEngine, number

SINK = CallbackSink(print)
EMPTY_FINAL = {"triton_enable_empty_final_response": InferParameter(bool_param=True)}


class DirectSink(StreamSink):
    """Delivers in the responding thread."""

    def __init__(self, deliver):
        super().__init__(None, lambda request, response: deliver(request.tag, response))

    def _wake(self):
        self._drain()


class StreamHarness:
    """A stream connected to a fake engine."""

    def __init__(self, limit=2, ends_on_error=False, deadline_ns=0):
        self.engine = FakeEngine()
        self.changes = 0
        self.stream = InferStream(
            ResponseWindow(limit, 1000), ends_on_error, self.change, deadline_ns
        )
        self.producers = DirectSink(self.stream.add_response)

    def change(self):
        self.changes += 1

    def send_request(self, model, request_id="", **fields):
        message = ModelInferRequest(model_name=model, id=request_id, **fields)
        entry = StreamEntry(self.stream)
        entry.describe(
            message.id,
            message.model_name,
            message.model_version,
            wants_empty_final(message.parameters),
        )
        try:
            self.stream.take(entry, decode_request(message, SINK), self.engine, self.producers)
        except TritonError as error:
            self.stream.refuse(entry, error)
        return entry

    def respond(self, entry, response):
        if entry.is_ordered:
            self.stream.add_response(entry, response)
        else:
            entry.request.sink.put(entry.request, response)

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
def test_responses_are_sent_in_the_order_of_the_requests(order):
    harness = StreamHarness()
    entries = [harness.send_request("later", str(at)) for at in range(5)]
    for at in order:
        harness.respond(entries[at], number(entries[at].request, at, final=True))
    assert harness.ids() == ["0", "1", "2", "3", "4"]
    assert harness.stream.idle


def test_responses_of_a_decoupled_model_are_not_ordered():
    harness = StreamHarness()
    waiting, decoupled = harness.send_request("later", "a"), harness.send_request("decoupled", "b")
    harness.respond(decoupled, number(decoupled.request, 1))
    harness.respond(decoupled, number(decoupled.request, 2, final=True))
    assert harness.ids() == ["b", "b"]
    assert not harness.stream.idle
    harness.respond(waiting, number(waiting.request, 3, final=True))
    assert harness.ids() == ["a"]


def test_an_empty_final_response_is_sent_only_on_request():
    harness = StreamHarness()
    quiet, infer_request = (
        harness.send_request("decoupled", "q"),
        harness.send_request("decoupled", "a", parameters=EMPTY_FINAL),
    )
    for entry in (quiet, infer_request):
        harness.respond(entry, InferResponse((), "decoupled", 1, entry.id, empty=True))
    (message,) = harness.sent()
    assert message.infer_response.id == "a"
    assert message.infer_response.parameters["triton_final_response"].bool_param
    assert harness.stream.idle


def test_a_refusal_is_sent_in_order():
    harness = StreamHarness()
    entry = harness.send_request("later", "1")
    harness.send_request("unknown", "2")
    assert harness.sent() == []
    harness.respond(entry, number(entry.request, 1, final=True))
    first, second = harness.sent()
    assert first.infer_response.id == "1"
    assert (second.infer_response.id, second.error_message) == (
        "2",
        "Request for unknown model: 'unknown' is not found",
    )


def test_an_error_of_the_model_is_a_message():
    harness = StreamHarness()
    entry = harness.send_request("later", "1")
    harness.respond(entry, InferResponse.failed(entry.request, Internal("no")))
    (message,) = harness.sent()
    assert (message.error_message, message.infer_response.model_name) == ("no", "later")


def test_the_first_model_error_ends_the_call_on_request():
    harness = StreamHarness(ends_on_error=True)
    harness.send_request("later", "never answered")
    entry = harness.send_request("later")
    harness.respond(entry, InferResponse.failed(entry.request, Internal("no")))
    (error,) = harness.sent()
    assert isinstance(error, Internal)


@pytest.mark.parametrize("here", [True, False])
def test_a_request_cancelled_at_its_deadline_ends_the_call(here):
    harness = StreamHarness(deadline_ns=1)
    entry = harness.send_request("later")
    entry.request.cancelled = here  # otherwise cancelled by an engine in another process
    harness.respond(entry, InferResponse.failed(entry.request, Cancelled("Request cancelled")))
    (error,) = harness.sent()
    assert isinstance(error, DeadlineExceeded)


def test_a_request_cancelled_before_its_deadline_gets_an_error():
    harness = StreamHarness(deadline_ns=2**62)
    entry = harness.send_request("later")
    entry.request.cancel()
    harness.respond(entry, InferResponse.failed(entry.request, Cancelled("Request cancelled")))
    (message,) = harness.sent()
    assert message.error_message == "Request cancelled"


def test_a_refusal_never_ends_the_call():
    harness = StreamHarness(ends_on_error=True)
    harness.send_request("unknown", "refused")
    (message,) = harness.sent()
    assert (message.infer_response.id, bool(message.error_message)) == ("refused", True)


def test_a_response_that_cannot_be_encoded_becomes_an_error():
    harness = StreamHarness()
    entry = harness.send_request("later")
    harness.respond(entry, InferResponse((), "later", 1, parameters={"x": 2**70}))
    (message,) = harness.sent()
    assert "the response can not be sent: response parameter 'x'" in message.error_message
    assert harness.stream.idle


def test_a_producer_waits_for_a_slow_client():
    harness = StreamHarness(limit=2)
    entry, other = harness.send_request("decoupled"), harness.send_request("decoupled")
    for value in range(2):
        assert entry.flow_control.ready
        harness.respond(entry, number(entry.request, value))
    assert not entry.flow_control.ready
    assert other.flow_control.ready
    assert harness.stream.unsent_bytes > 0
    freed = []
    entry.request.sink.when_ready(entry.request, lambda: freed.append(entry.flow_control.responses))
    harness.sent()
    assert freed == [1]
    assert entry.flow_control.ready
    assert harness.stream.unsent_bytes == 0


def test_the_byte_limit_applies_to_large_responses():
    harness = StreamHarness(limit=100)
    entry = harness.send_request("decoupled")
    respond = InferResponse(
        [Tensor.from_numpy("OUT", np.zeros(1000, np.uint8))], "decoupled", 1, final=False
    )
    harness.respond(entry, respond)
    assert not entry.flow_control.ready
    harness.sent()
    assert entry.flow_control.ready


def test_unsent_empty_responses_release_flow_control():
    harness = StreamHarness(limit=1)
    entry = harness.send_request("decoupled")
    harness.respond(entry, InferResponse((), "decoupled", 1, final=False, empty=True))
    assert entry.flow_control.responses == 0


def test_a_refused_decoupled_request_gets_an_error():
    harness = StreamHarness()
    harness.engine.refused = InvalidArgument("not like this")
    entry = harness.send_request("decoupled")
    (message,) = harness.sent()
    assert message.error_message == "not like this"
    assert entry.flow_control is None


def test_abandon_cancels_requests_and_releases_producers():
    harness = StreamHarness(limit=1)
    entry, done = harness.send_request("decoupled"), harness.send_request("later")
    finished = done.request
    harness.respond(done, number(finished, 1, final=True))
    harness.respond(entry, number(entry.request, 1))
    harness.sent()
    harness.stream.abandon()
    assert entry.request.cancelled
    assert not finished.cancelled
    for value in range(3):
        harness.respond(entry, number(entry.request, value))
        assert entry.flow_control.ready
    assert harness.sent() == []


def test_changed_is_called_for_each_response():
    harness = StreamHarness()
    entry = harness.send_request("decoupled")
    before = harness.changes
    harness.respond(entry, InferResponse((), "decoupled", 1, empty=True))
    assert harness.changes == before + 1


@pytest.mark.parametrize("ends_on_error", [False, True])
def test_an_error_after_the_only_response_is_not_sent(ends_on_error):
    harness = StreamHarness(ends_on_error=ends_on_error)
    entry, infer_request = (
        harness.send_request("later", "a"),
        harness.send_request("later", "b", parameters=EMPTY_FINAL),
    )
    for each in (entry, infer_request):
        harness.respond(each, number(each.request, 1))
        harness.respond(
            each, InferResponse((), "later", 1, each.id, error=Internal("no second one"))
        )
    messages = harness.sent()
    assert [(message.infer_response.id, message.error_message) for message in messages] == [
        ("a", ""),
        ("b", ""),
        ("b", ""),
    ]
    assert messages[2].infer_response.parameters["triton_final_response"].bool_param
    assert harness.stream.idle
