from __future__ import annotations

import threading

import pytest

from tritonpy_types import FlowControl


def exhausted(max_responses: int = 4, nbytes: int = 10) -> FlowControl:
    flow_control = FlowControl(max_responses, 1000)
    for _ in range(max_responses):
        flow_control.put(nbytes)
    return flow_control


def test_the_window_is_limited_by_responses() -> None:
    flow_control = FlowControl(2, 1000)
    assert flow_control.ready
    flow_control.put(0)
    assert flow_control.ready
    flow_control.put(0)
    assert not flow_control.ready
    flow_control.take()
    assert flow_control.ready


def test_the_window_is_limited_by_bytes_but_admits_a_large_response() -> None:
    flow_control = FlowControl(100, 10)
    flow_control.put(9)
    assert flow_control.ready
    flow_control.put(10**6)
    assert not flow_control.ready
    assert (flow_control.responses, flow_control.nbytes) == (2, 10**6 + 9)
    flow_control.take()
    assert not flow_control.ready
    flow_control.take()
    assert flow_control.ready
    assert (flow_control.responses, flow_control.nbytes) == (0, 0)


def test_take_raises_on_an_empty_stream() -> None:
    with pytest.raises(IndexError):
        FlowControl(1, 1).take()


def test_a_callback_is_called_at_once_while_credit_is_left() -> None:
    called: list[int] = []
    FlowControl(1, 1).when_ready(lambda: called.append(1))
    assert called == [1]


def test_waiting_callbacks_are_called_once_when_half_of_the_window_is_free() -> None:
    flow_control, called = exhausted(4), []
    flow_control.when_ready(lambda: called.append("a"))
    flow_control.when_ready(lambda: called.append("b"))
    flow_control.take()
    assert (called, flow_control.ready, flow_control.blocks_producer) == ([], True, True)
    flow_control.take()
    assert (called, flow_control.blocks_producer) == (["a", "b"], False)
    flow_control.take()
    assert called == ["a", "b"]


def test_callbacks_that_wait_for_bytes_are_called_when_half_of_them_are_consumed() -> None:
    flow_control, called = FlowControl(100, 10), []
    for size in (4, 4, 4):
        flow_control.put(size)
    flow_control.when_ready(lambda: called.append(1))
    flow_control.take()
    assert called == []
    flow_control.take()
    assert called == [1]


def test_a_window_of_one_response_calls_when_it_is_empty() -> None:
    flow_control, called = exhausted(1), []
    flow_control.when_ready(lambda: called.append(1))
    flow_control.take()
    assert called == [1]


def test_release_calls_waiting_callbacks_without_credit() -> None:
    flow_control, called = exhausted(), []
    flow_control.when_ready(lambda: called.append(1))
    flow_control.release()
    assert called == [1]
    assert not flow_control.ready


def test_an_abandoned_stream_never_blocks() -> None:
    flow_control, called = exhausted(), []
    flow_control.when_ready(lambda: called.append("waited"))
    flow_control.abandon()
    flow_control.put(1)
    flow_control.when_ready(lambda: called.append("came later"))
    assert called == ["waited", "came later"]
    assert flow_control.ready


def test_a_callback_may_use_the_flow_control() -> None:
    flow_control, called = exhausted(2), []

    def refill() -> None:
        flow_control.put(1)
        flow_control.put(1)
        flow_control.when_ready(lambda: called.append(1))

    flow_control.when_ready(refill)
    flow_control.take()
    assert called == []
    flow_control.take()
    flow_control.take()
    assert called == [1]


def test_waiting_threads_never_miss_their_call() -> None:
    """Four producers and one consumer: the limit is exceeded by at most one response per producer."""
    flow_control, sent, lock = FlowControl(3, 10**9), [0], threading.Lock()

    def produce() -> None:
        for _ in range(500):
            free = threading.Event()
            flow_control.when_ready(free.set)
            free.wait()
            flow_control.put(1)
            with lock:
                sent[0] += 1

    producers = [threading.Thread(target=produce) for _ in range(4)]
    for producer in producers:
        producer.start()
    taken = 0
    while taken < 2000:
        waiting = flow_control.responses
        assert waiting <= 3 + 4
        if waiting:
            flow_control.take()
            taken += 1
    for producer in producers:
        producer.join()
    assert (sent[0], flow_control.responses, flow_control.nbytes) == (2000, 0, 0)
