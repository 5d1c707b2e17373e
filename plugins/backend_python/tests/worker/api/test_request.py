from __future__ import annotations

import asyncio
import gc
from threading import Barrier, Thread

import numpy as np
import pytest

from tritonpy_worker import host as hosts
from tritonpy_worker.api.call import CallSpec
from tritonpy_worker.api.errors import TritonModelException
from tritonpy_worker.api.preferred_memory import TRITONSERVER_MEMORY_CPU, PreferredMemory
from tritonpy_worker.api.request import InferenceRequest
from tritonpy_worker.api.response import InferenceResponse
from tritonpy_worker.api.response_iterator import ResponseIterator
from tritonpy_worker.api.tensor import Tensor

from .fake_host import FakeHost

X, Y = Tensor("x", np.zeros(1)), Tensor("y", np.zeros(2))


def made(**given):
    return InferenceRequest(
        **{"inputs": [X], "requested_output_names": ["O"], "model_name": "other", **given}
    )


def received(host, number=5, parameters=None, output_names=("O", "P"), **given):
    fields = {
        "request_id": "r",
        "correlation_id": 7,
        "inputs": (X, Y),
        "flags": 1,
        "timeout": 500,
        **given,
    }
    return InferenceRequest.received(
        host, number, output_names=output_names, parameters=parameters or {}, **fields
    )


def refusal(function, *arguments, **named):
    with pytest.raises(TritonModelException) as caught:
        function(*arguments, **named)
    return str(caught.value)


def test_a_received_request_has_the_clients_fields(host):
    request = received(host, parameters={"a": 1, "b": "x"})
    assert request.number == 5
    assert request.request_id() == "r"
    assert request.correlation_id() == 7
    assert request.inputs() == [X, Y]
    assert request.requested_output_names() == {"O", "P"}
    assert request.parameters() == '{"a":1,"b":"x"}'
    assert request.flags() == 1
    assert request.timeout() == 500


def test_returned_lists_and_sets_are_copies(host):
    request = received(host)
    request.inputs().clear()
    request.requested_output_names().clear()
    assert request.inputs() == [X, Y]
    assert request.requested_output_names() == {"O", "P"}


def test_a_sequence_may_have_a_name(host):
    assert received(host, correlation_id="s").correlation_id() == "s"


def test_the_host_reports_cancellation(host):
    request = received(host)
    assert not request.is_cancelled()
    host.cancelled.add(5)
    assert request.is_cancelled()
    assert request.get_response_sender().is_cancelled()


def test_the_trace_of_a_received_request_comes_from_the_host(host):
    request = received(host)
    assert request.trace().get_context() is None
    host.contexts[5] = '{"traceparent":"00"}'
    assert request.trace().get_context() == '{"traceparent":"00"}'


def test_release_flags_are_kept_for_the_runtime(host):
    request = received(host)
    assert request.release_flags == 1
    request.set_release_flags(2)
    assert request.release_flags == 2


def test_flags_can_be_replaced():
    request = made(flags=1)
    request.set_flags(np.uint32(3))
    assert request.flags() == 3
    for setter, name in (
        (request.set_flags, "set_flags"),
        (request.set_release_flags, "set_release_flags"),
    ):
        for bad in ("x", -1, None, 1.0, 1 << 32):
            with pytest.raises(TypeError, match=rf"^{name}\(\): incompatible function arguments"):
                setter(bad)
    assert request.flags() == 3


def test_a_request_has_one_sender():
    host = FakeHost()
    request = received(host)
    sender = request.get_response_sender()
    assert request.get_response_sender() is sender
    sender.send(InferenceResponse([Tensor("P", np.zeros(1)), Tensor("Z", np.zeros(1))]))
    ((number, response, final),) = host.sent
    assert (number, final) == (5, False)
    assert [tensor.name() for tensor in response.output_tensors()] == ["P"]


def test_concurrent_threads_get_the_same_sender():
    request, start, senders = received(FakeHost()), Barrier(8), []

    def run():
        start.wait()
        senders.append(request.get_response_sender())

    threads = [Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, senders))) == 1


def test_a_deleted_decoupled_request_without_response_is_reported():
    host = FakeHost(decoupled=True)
    request = received(host)
    assert host.abandoned == []
    del request
    gc.collect()
    assert host.abandoned == [5]


def test_a_sender_outlives_its_request():
    host = FakeHost(decoupled=True)
    sender = received(host).get_response_sender()
    gc.collect()
    assert host.abandoned == []
    sender.send(flags=1)
    assert host.sent == [(5, None, True)]


def test_other_deleted_requests_are_not_reported():
    host = FakeHost()
    received(host)
    gc.collect()
    assert host.abandoned == []


def test_a_created_request_has_the_given_fields():
    trace = received(FakeHost()).trace()
    request = InferenceRequest(
        "r",
        "s",
        (X, Y),
        ("O", "P", "O"),
        "other",
        3,
        2,
        1000,
        trace=trace,
        parameters={"a": True, "c": 3},
    )
    assert request.number is None
    assert request.request_id() == "r"
    assert request.correlation_id() == "s"
    assert request.inputs() == [X, Y]
    assert request.requested_output_names() == {"O", "P"}
    assert request.flags() == 2
    assert request.timeout() == 1000
    assert request.trace() is trace
    assert request.parameters() == '{"a": true, "c": 3}'
    assert not request.is_cancelled()


def test_defaults_are_tritons():
    request = made()
    assert (request.request_id(), request.correlation_id(), request.flags(), request.timeout()) == (
        "",
        0,
        0,
        0,
    )
    assert request.parameters() == "{}"
    assert request.trace().get_context() is None


def test_the_limits_of_numbers():
    top = (1 << 64) - 1
    assert made(timeout=top).timeout() == top
    assert made(correlation_id=top).correlation_id() == top
    assert made(flags=(1 << 32) - 1).flags() == (1 << 32) - 1
    assert made(correlation_id=True).correlation_id() == 1


@pytest.mark.parametrize("value", [-1, 1 << 64, "\ud800"])
def test_correlation_ids_that_no_protocol_can_carry_are_rejected(value):
    with pytest.raises(RuntimeError, match=r"^Unable to cast Python instance to C"):
        made(correlation_id=value)


@pytest.mark.parametrize("value", [1.5, b"s", [1], np.int64(5)])
def test_a_correlation_id_is_a_number_or_text(value):
    assert refusal(made, correlation_id=value) == "Correlation ID must be integer or string"


@pytest.mark.parametrize(
    "given",
    [
        {"inputs": None}, {"inputs": [5]}, {"inputs": "x"}, {"inputs": {X}}, {"requested_output_names": "OA"},
        {"requested_output_names": None}, {"requested_output_names": [None]}, {"requested_output_names": [5]},
        {"model_name": None}, {"model_name": 5}, {"request_id": None}, {"request_id": 3}, {"correlation_id": None},
        {"model_version": "1"}, {"model_version": 1 << 63}, {"flags": -1}, {"flags": 1.0}, {"timeout": -1},
        {"preferred_memory": 1}, {"trace": "t"},
    ],
)  # fmt: skip
def test_wrong_argument_types_have_tritons_error(given):
    with pytest.raises(TypeError) as caught:
        made(**given)
    assert str(caught.value).startswith(
        "__init__(): incompatible constructor arguments. The following argument types are supported:\n"
        "    1. c_python_backend_utils.InferenceRequest(request_id: str = '', correlation_id: object = 0, inputs: "
    )


def test_a_request_without_arguments_is_rejected():
    with pytest.raises(TypeError, match="incompatible constructor arguments"):
        InferenceRequest()


def test_none_and_empty_names_have_tritons_error():
    assert refusal(made, inputs=[X, None], request_id="7") == (
        "Input tensor for request with id '7' and model name 'other' should not be empty."
    )
    assert refusal(made, requested_output_names=["O", ""]) == (
        "Requested output name for request with id '' and model name 'other' should not be empty."
    )


def test_invalid_parameters_are_rejected():
    assert refusal(made, parameters={"a": None}).startswith(
        "Expect parameters values to have type bool/int/str"
    )


def test_a_created_request_cannot_have_responses():
    sender = made().get_response_sender()
    assert refusal(sender.send, InferenceResponse()) == (
        "Unable to send response. Response sender has no reference to the decoupled state of the model."
    )


def test_a_call_has_all_fields(host):
    host.responses = [InferenceResponse()]
    memory = PreferredMemory(TRITONSERVER_MEMORY_CPU)
    request = InferenceRequest(
        "r",
        9,
        [X, Y],
        ["O", "P", "O"],
        "other",
        2,
        1,
        77,
        memory,
        received(host, number=12).trace(),
        {"a": True},
    )
    request.set_flags(3)
    assert request.exec() is host.responses[0]
    assert host.calls == [
        CallSpec(
            model_name="other",
            model_version=2,
            request_id="r",
            inputs=(X, Y),
            requested_output_names=("O", "P"),
            correlation_id=9,
            flags=3,
            timeout=77,
            parameters={"a": True},
            preferred_memory=memory,
            trace=12,
            decoupled=False,
        )
    ]


def test_defaults_of_a_call(host):
    host.responses = [InferenceResponse()]
    made().exec()
    (call,) = host.calls
    assert (call.model_version, call.preferred_memory, call.trace) == (-1, None, None)


def test_a_request_can_be_executed_again(host):
    host.responses = [InferenceResponse()]
    request = made()
    request.exec()
    request.exec(decoupled=False)
    assert host.calls[0] == host.calls[1]


def test_a_decoupled_call_gives_an_iterator(host):
    host.responses = [InferenceResponse(), InferenceResponse()]
    for decoupled in (True, 1, np.bool_(1)):
        responses = made().exec(decoupled=decoupled)
        assert isinstance(responses, ResponseIterator)
        assert list(responses) == host.responses
        assert host.calls[-1].decoupled is True


def test_decoupled_must_be_a_truth_value(host):
    for bad in ("x", None):
        for function in ("exec", "async_exec"):
            with pytest.raises(
                TypeError, match=rf"^{function}\(\): incompatible function arguments"
            ):
                getattr(made(), function)(bad)
    assert host.calls == []


def test_the_host_may_reject_a_call(host):
    def call(call):
        raise TritonModelException("BLS is only supported during the 'execute' function.")

    host.call = call
    assert refusal(made().exec) == "BLS is only supported during the 'execute' function."


def test_a_request_belongs_to_the_model_that_made_it(host):
    host.responses = [InferenceResponse()]
    request = made()
    thread = Thread(target=request.exec)
    thread.start()
    thread.join()
    assert len(host.calls) == 1


def test_without_a_model_there_is_no_server():
    request = made()
    with pytest.raises(RuntimeError, match="only from a model"):
        request.exec()
    token = hosts._CURRENT.set(FakeHost())
    try:
        hosts.current().responses = [InferenceResponse()]
        assert request.exec() is hosts.current().responses[0]
    finally:
        hosts._CURRENT.reset(token)


def test_a_received_request_cannot_be_executed(host):
    assert "create a new InferenceRequest" in refusal(received(host).exec)
    assert host.calls == []


def test_an_async_call_starts_immediately_and_is_awaited(host):
    host.responses = [InferenceResponse()]

    async def run():
        answers = [made().async_exec() for _ in range(3)]
        await asyncio.sleep(0)
        assert len(host.calls) == 3
        return await asyncio.gather(*answers)

    assert asyncio.run(run()) == host.responses * 3


def test_a_decoupled_async_call_gives_an_iterator(host):
    host.responses = [InferenceResponse(), InferenceResponse()]

    async def run():
        return list(await made().async_exec(decoupled=True))

    assert asyncio.run(run()) == host.responses
    assert host.calls[0].decoupled


def test_an_async_call_needs_an_event_loop(host):
    with pytest.raises(RuntimeError, match="no running event loop"):
        made().async_exec()
    assert host.calls == []
