from __future__ import annotations

import gc
from threading import Barrier, Thread

import numpy as np
import pytest

from tritonpy_worker.api.errors import TritonModelException
from tritonpy_worker.api.response import InferenceResponse
from tritonpy_worker.api.response_sender import InferenceResponseSender
from tritonpy_worker.api.tensor import Tensor

from .fake_host import FakeHost

FINAL = 1
UNABLE = "Unable to send response. "
CLOSED = UNABLE + "Response sender has been closed."


def sender(decoupled=True, output_names=("A",)):
    host = FakeHost(decoupled)
    return host, InferenceResponseSender(host, 7, output_names)


def refusal(function, *arguments, **named):
    with pytest.raises(TritonModelException) as caught:
        function(*arguments, **named)
    return str(caught.value)


def test_a_decoupled_model_sends_any_number_of_responses():
    host, out = sender()
    first, last = InferenceResponse(), InferenceResponse()
    out.send(first)
    out.send(last, flags=FINAL)
    assert host.sent == [(7, first, False), (7, last, True)]
    assert out.closed
    assert out.sent == 2


def test_a_decoupled_model_may_end_a_request_without_a_response():
    host, out = sender()
    out.send(flags=FINAL)
    assert host.sent == [(7, None, True)]


def test_responses_after_the_final_one_are_rejected():
    host, out = sender()
    out.send(flags=FINAL)
    assert refusal(out.send, InferenceResponse()) == CLOSED
    assert refusal(out.send, flags=FINAL) == CLOSED
    assert len(host.sent) == 1


def test_the_runtime_can_close_it():
    host, out = sender()
    out.close()
    assert refusal(out.send, InferenceResponse()) == CLOSED
    assert host.sent == []


def test_only_requested_outputs_are_sent():
    host, out = sender(output_names=("A",))
    given = InferenceResponse([Tensor("B", np.zeros(1)), Tensor("A", np.zeros(1))])
    out.send(given, FINAL)
    ((_, response, _),) = host.sent
    assert [tensor.name() for tensor in response.output_tensors()] == ["A"]
    assert len(given.output_tensors()) == 2


@pytest.mark.parametrize("decoupled", [True, False])
def test_unknown_flags_are_rejected(decoupled):
    host, out = sender(decoupled)
    for flags in (2, 3, 7):
        assert (
            refusal(out.send, InferenceResponse(), flags=flags)
            == UNABLE + "Unsupported flag provided."
        )
    assert host.sent == []


@pytest.mark.parametrize("decoupled", [True, False])
def test_an_empty_send_is_rejected(decoupled):
    text = "Inference Response object must be provided when the response flags is set to zero."
    assert refusal(sender(decoupled)[1].send) == text
    assert refusal(sender(decoupled)[1].send, None, 0) == text


@pytest.mark.parametrize(
    "arguments",
    [("x",), (InferenceResponse(), -1), (InferenceResponse(), "1"), (None, None), (5, 1)],
)
def test_wrong_argument_types_have_tritons_error(arguments):
    host, out = sender()
    with pytest.raises(TypeError) as caught:
        out.send(*arguments)
    assert str(caught.value).startswith(
        "send(): incompatible function arguments. The following argument types are supported:\n"
        "    1. (self: c_python_backend_utils.InferenceResponseSender, "
        "response: c_python_backend_utils.InferenceResponse = None, flags: int = 0) -> None\n\nInvoked with: "
    )
    assert host.sent == []


def test_other_models_respond_once_and_may_then_end_the_request():
    host, out = sender(decoupled=False)
    assert (
        refusal(out.send, flags=FINAL)
        == UNABLE + "Non-decoupled model cannot send complete final before sending a response."
    )
    out.send(InferenceResponse())
    assert (
        refusal(out.send, InferenceResponse())
        == UNABLE + "Non-decoupled model cannot send more than one response."
    )
    out.send(flags=FINAL)
    assert refusal(out.send, flags=FINAL) == CLOSED
    assert (
        refusal(out.send, InferenceResponse(), FINAL)
        == UNABLE + "Non-decoupled model cannot send more than one response."
    )
    assert [final for _, _, final in host.sent] == [False, True]


def test_other_models_may_respond_with_the_final_flag():
    host, out = sender(decoupled=False)
    out.send(InferenceResponse(), FINAL)
    assert refusal(out.send, flags=FINAL) == CLOSED
    assert len(host.sent) == 1


def test_a_returned_response_counts():
    host, out = sender(decoupled=False)
    out.count(InferenceResponse(), final=True)
    assert out.closed
    assert host.sent == []
    assert "more than one response" in refusal(out.send, InferenceResponse())


def test_a_sender_without_a_received_request_rejects_responses():
    out = InferenceResponseSender(None, 0, ("A",))
    text = UNABLE + "Response sender has no reference to the decoupled state of the model."
    assert refusal(out.send, InferenceResponse()) == text
    assert refusal(out.send, flags=FINAL) == text
    assert not out.is_cancelled()


def test_errors_of_the_server_are_raised():
    host, out = sender()
    host.answers["send"] = TritonModelException("the client is gone")
    assert refusal(out.send, InferenceResponse()) == "the client is gone"


def test_the_host_reports_cancellation():
    host, out = sender()
    assert not out.is_cancelled()
    host.cancelled.add(7)
    assert out.is_cancelled()


@pytest.mark.parametrize("decoupled", [True, False])
def test_an_open_sender_that_is_deleted_is_reported_once(decoupled):
    host, out = sender(decoupled)
    out.send(InferenceResponse())
    assert host.abandoned == []
    del out
    gc.collect()
    assert host.abandoned == [7]


@pytest.mark.parametrize("end", [lambda out: out.send(flags=FINAL), lambda out: out.close()])
def test_a_closed_sender_that_is_deleted_is_not_reported(end):
    host, out = sender()
    end(out)
    del out
    gc.collect()
    assert host.abandoned == []


def test_a_deleted_sender_without_host_is_not_reported():
    InferenceResponseSender(None, 0, ())
    gc.collect()


def test_of_many_threads_one_ends_the_request():
    host, out = sender()
    start, refused = Barrier(8), []

    def run():
        start.wait()
        try:
            out.send(flags=FINAL)
        except TritonModelException as error:
            refused.append(str(error))

    threads = [Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert host.sent == [(7, None, True)]
    assert refused == [CLOSED] * 7
