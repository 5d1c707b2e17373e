"""Draining of instances: they get only bound requests and end when these are done."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from core.tests.runners.test_dispatcher_without_threads import DispatcherBench, WakeCountingSlot
from tritonpy.runners.slot import Slot
from tritonpy_types import InferRequest, InferResponse


@pytest.fixture
def bench() -> Iterator[DispatcherBench]:
    it = DispatcherBench()
    yield it
    it.timer.stop()


def answer(bench: DispatcherBench, request: InferRequest) -> None:
    """Do what a model does when `request` gets its final response."""
    with bench.dispatcher.lock:
        request.finished = InferResponse(()).final
        bench.dispatcher.release(request, reschedule=False)


def test_an_idle_draining_instance_is_woken_and_gets_no_more_work(bench: DispatcherBench) -> None:
    slot = WakeCountingSlot(0)
    assert bench.take(slot) is None
    bench.dispatcher.drain(slot)
    assert (slot.wakeups, slot.drained, slot.idle) == (1, True, False)
    bench.enqueue()
    assert bench.take(slot) is None
    assert bench.dispatcher.take(slot, 8) is None
    assert not bench.dispatcher.has_batch_for(slot)


def test_new_requests_go_to_remaining_instances(bench: DispatcherBench) -> None:
    going, staying = WakeCountingSlot(0), WakeCountingSlot(1)
    assert bench.take(going) is None
    assert bench.take(staying) is None
    bench.dispatcher.drain(going)
    bench.enqueue()
    assert (going.wakeups, staying.wakeups) == (1, 1)
    assert len(bench.take(staying) or ()) == 1


def test_a_draining_instance_ends_with_its_last_response(bench: DispatcherBench) -> None:
    slot = WakeCountingSlot(0)
    requests = [bench.enqueue(), bench.enqueue()]
    assert bench.take(slot) == [requests[0]]
    assert bench.take(slot) == [requests[1]]
    assert bench.take(slot) is None
    bench.dispatcher.drain(slot)
    answer(bench, requests[0])
    assert (slot.drained, slot.wakeups) == (False, 0)
    answer(bench, requests[1])
    assert (slot.drained, slot.wakeups) == (True, 1)


def test_a_draining_instance_gets_bound_requests_until_the_scheduler_releases_it(
    bench: DispatcherBench,
) -> None:
    slot, bound = WakeCountingSlot(0), [True]
    bench.scheduler.holds = lambda _index: bound[0]  # type: ignore[method-assign]
    assert bench.take(slot) is None
    bench.dispatcher.drain(slot)
    assert not slot.drained
    request = bench.enqueue()
    assert bench.take(slot) == [request]
    answer(bench, request)
    assert not slot.drained
    assert bench.take(slot) is None
    bound[0] = False
    bench.dispatcher.wake()  # such as when its sequence expired
    assert slot.drained


def test_a_waiting_thread_of_a_draining_instance_ends(bench: DispatcherBench) -> None:
    slot = Slot(WakeCountingSlot(0).context)
    results: list[bool] = []
    thread = threading.Thread(target=lambda: results.append(bench.dispatcher.wait_ready(slot)))
    thread.start()
    bench.dispatcher.drain(slot)
    thread.join(10)
    assert results == [False]
    assert bench.dispatcher.wait_ready(slot) is False
