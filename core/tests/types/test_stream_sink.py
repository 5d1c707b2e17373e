from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace

import numpy as np

from tritonpy.types import CallbackSink, FlowControl, InferRequest, InferResponse, Sink, StreamSink, Tensor


def partial_response() -> InferResponse:
    return InferResponse([Tensor.from_numpy("OUT", np.zeros(4, np.int32))], final=False)


def stream(max_responses: int = 1) -> tuple[InferRequest, FlowControl, list[InferResponse]]:
    delivered: list[InferResponse] = []
    sink = StreamSink(asyncio.new_event_loop(), lambda _, response: delivered.append(response))
    flow_control = FlowControl(max_responses, 1000)
    return InferRequest("m", {}, sink, tag=SimpleNamespace(flow_control=flow_control)), flow_control, delivered


def in_thread(request: InferRequest) -> tuple[threading.Thread, list[bool], threading.Event]:
    """Start a producer that waits for credit.

    Return its thread, its results and its start event.
    """
    results: list[bool] = []
    started = threading.Event()

    def wait() -> None:
        started.set()
        results.append(request.wait_for_credit())

    producer = threading.Thread(target=wait)
    producer.start()
    return producer, results, started


def test_responses_are_counted_with_the_size_of_their_tensors() -> None:
    request, flow_control, delivered = stream(2)
    request.respond(partial_response())
    request.respond(partial_response())
    assert (flow_control.responses, flow_control.nbytes) == (2, 32)
    assert not request.sink.ready(request)
    request.sink._drain()
    assert len(delivered) == 2
    request.sink._loop.close()


def test_a_producer_waits_until_a_response_was_taken() -> None:
    request, flow_control, _ = stream()
    assert request.wait_for_credit()
    request.respond(partial_response())
    producer, results, started = in_thread(request)
    started.wait()
    assert results == []
    flow_control.take()
    producer.join()
    assert results == [True]
    request.sink._loop.close()


def test_a_cancellation_ends_the_wait_of_a_producer() -> None:
    request, _, _ = stream()
    request.respond(partial_response())
    producer, results, started = in_thread(request)
    started.wait()
    request.cancel()
    producer.join()
    assert results == [False]
    assert not request.wait_for_credit()
    request.sink._loop.close()


def test_a_disconnected_consumer_ends_the_wait_of_a_producer() -> None:
    request, flow_control, _ = stream()
    request.respond(partial_response())
    producer, results, started = in_thread(request)
    started.wait()
    flow_control.abandon()
    producer.join()
    assert results == [True]
    assert request.wait_for_credit()
    request.sink._loop.close()


def test_other_sinks_have_credit_and_call_back_immediately() -> None:
    called: list[int] = []
    sink: Sink = CallbackSink(lambda request, response: None)
    request = InferRequest("m", {}, sink)
    sink.when_ready(request, lambda: called.append(1))
    assert called == [1]
    assert request.wait_for_credit()
    request.cancel()
    assert not request.wait_for_credit()
