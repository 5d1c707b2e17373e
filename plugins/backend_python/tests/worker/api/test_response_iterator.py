from __future__ import annotations

from threading import Event, Thread

import pytest

from tritonpy_worker.api.response import InferenceResponse
from tritonpy_worker.api.response_iterator import ResponseIterator

from .fake_host import FakeStream

ONE, TWO, LAST = (InferenceResponse() for _ in range(3))


def test_responses_are_in_order_and_can_be_iterated_again():
    responses = ResponseIterator(FakeStream([ONE, TWO, LAST]))
    assert list(responses) == [ONE, TWO, LAST]
    with pytest.raises(StopIteration):
        next(responses)
    assert list(responses) == [ONE, TWO, LAST]
    assert next(iter(responses)) is ONE
    assert list(responses) == [TWO, LAST]


def test_an_interrupted_iteration_continues():
    responses = ResponseIterator(FakeStream([ONE, TWO, LAST]))
    for response in responses:
        assert response is ONE
        break
    assert next(responses) is TWO
    assert list(responses) == [LAST]


def test_a_stream_without_responses():
    assert list(ResponseIterator(FakeStream([]))) == []


def test_a_running_call_can_be_cancelled():
    stream = FakeStream([ONE])
    responses = ResponseIterator(stream)
    next(responses)
    responses.cancel()
    assert stream.cancelled


def test_a_finished_call_is_not_cancelled():
    stream = FakeStream([ONE])
    responses = ResponseIterator(stream)
    list(responses)
    responses.cancel()
    assert not stream.cancelled


def test_a_call_can_be_cancelled_while_another_thread_waits():
    class Waiting(FakeStream):
        def __init__(self):
            super().__init__([])
            self.waits, self.released = Event(), Event()

        def __next__(self):
            self.waits.set()
            self.released.wait()
            raise StopIteration

        def cancel(self):
            self.released.set()

    stream = Waiting()
    responses = ResponseIterator(stream)
    reader = Thread(target=list, args=(responses,))
    reader.start()
    stream.waits.wait()
    responses.cancel()
    reader.join()


def test_errors_of_the_stream_are_raised():
    class Broken(FakeStream):
        def __next__(self):
            raise ConnectionError("gone")

    with pytest.raises(ConnectionError):
        next(ResponseIterator(Broken([])))
