from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace

import numpy as np

from tritonpy.types import CallbackSink, InferRequest, InferResponse, Room, Sink, StreamSink, Tensor


def answer() -> InferResponse:
    return InferResponse([Tensor.from_numpy("OUT", np.zeros(4, np.int32))], final=False)


def stream(max_answers: int = 1) -> tuple[InferRequest, Room, list[InferResponse]]:
    delivered: list[InferResponse] = []
    sink = StreamSink(asyncio.new_event_loop(), lambda _, response: delivered.append(response))
    room = Room(max_answers, 1000)
    return InferRequest("m", {}, sink, tag=SimpleNamespace(room=room)), room, delivered


def in_thread(request: InferRequest) -> tuple[threading.Thread, list[bool], threading.Event]:
    """Start a producer that waits for room; return it, what it was told, and when it is about to wait."""
    told: list[bool] = []
    begun = threading.Event()

    def wait() -> None:
        begun.set()
        told.append(request.wait_for_room())

    producer = threading.Thread(target=wait)
    producer.start()
    return producer, told, begun


def test_answers_are_put_into_the_room_with_the_size_of_their_tensors() -> None:
    request, room, delivered = stream(2)
    request.respond(answer())
    request.respond(answer())
    assert (room.answers, room.nbytes) == (2, 32)
    assert not request.sink.ready(request)
    request.sink._drain()
    assert len(delivered) == 2
    request.sink._loop.close()


def test_a_producer_waits_until_an_answer_was_taken() -> None:
    request, room, _ = stream()
    assert request.wait_for_room()
    request.respond(answer())
    producer, told, begun = in_thread(request)
    begun.wait()
    assert told == []
    room.take()
    producer.join()
    assert told == [True]
    request.sink._loop.close()


def test_a_producer_that_waits_hears_of_the_cancellation() -> None:
    request, _, _ = stream()
    request.respond(answer())
    producer, told, begun = in_thread(request)
    begun.wait()
    request.cancel()
    producer.join()
    assert told == [False]
    assert not request.wait_for_room()
    request.sink._loop.close()


def test_a_producer_that_waits_is_freed_when_the_consumer_leaves() -> None:
    request, room, _ = stream()
    request.respond(answer())
    producer, told, begun = in_thread(request)
    begun.wait()
    room.abandon()
    producer.join()
    assert told == [True]
    assert request.wait_for_room()
    request.sink._loop.close()


def test_other_sinks_have_room_and_call_at_once() -> None:
    called: list[int] = []
    sink: Sink = CallbackSink(lambda request, response: None)
    request = InferRequest("m", {}, sink)
    sink.when_ready(request, lambda: called.append(1))
    assert called == [1]
    assert request.wait_for_room()
    request.cancel()
    assert not request.wait_for_room()
