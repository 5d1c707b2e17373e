"""Instances without threads, which take a batch or are marked idle and woken."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tritonpy.api.contexts import InstanceContext
from tritonpy.api.scheduler import SchedulerContext
from tritonpy.runners.direct_scheduler import DirectScheduler
from tritonpy.runners.dispatcher import Dispatcher
from tritonpy.runners.slot import Slot
from tritonpy.runners.timer import Timer
from tritonpy_types import InferRequest
from tritonpy_types.clock import now_ns

WAIT_S = 10
FAR_NS = 3_600_000_000_000


class WakeCountingSlot(Slot):
    """Counts its wake-ups."""

    def __init__(self, index: int, max_open: int | None = None) -> None:
        super().__init__(InstanceContext(f"m_0_{index}", "CPU", 0, index, max_open=max_open))
        self.wakeups = 0
        self.woken = threading.Event()

    def wake(self) -> None:
        self.wakeups += 1
        self.woken.set()


class ScheduledAt(DirectScheduler):
    """Has a batch from a given time on, or never, or raises."""

    def __init__(self) -> None:
        super().__init__(SchedulerContext("m", 1, None, None, None, None))  # type: ignore[arg-type]
        self.due_ns = 0
        self.silent = False
        self.error: Exception | None = None
        self.failing: int | None = None  # the only instance for which it raises; None: for all

    def ready(self, instance: int, now_ns: int) -> bool | int:
        if self.error is not None and self.failing in {None, instance}:
            raise self.error
        if not self._queue or self.silent:
            return False
        return True if now_ns >= self.due_ns else self.due_ns


class DispatcherBench:
    """A dispatcher with its scheduler and timer."""

    def __init__(self) -> None:
        self.timer, self.scheduler = Timer(), ScheduledAt()
        self.dispatcher = Dispatcher(self.timer)
        self.dispatcher.attach(self.scheduler)
        self.failures: list[Exception] = []
        self.dispatcher.failed = self.failures.append

    def enqueue(self) -> InferRequest:
        request = InferRequest("m", {}, None)  # type: ignore[arg-type]
        with self.dispatcher.lock:
            request.queued_ns = now_ns()
            self.dispatcher.enqueue(request)
        return request

    def take(self, slot: Slot) -> list[InferRequest] | None:
        batch = self.dispatcher.take_or_idle(slot)
        return None if batch is None else batch.requests


@pytest.fixture
def bench() -> Iterator[DispatcherBench]:
    it = DispatcherBench()
    yield it
    it.timer.stop()


def test_waiting_requests_are_taken_and_later_ones_wake(bench: DispatcherBench) -> None:
    slot = WakeCountingSlot(0)
    first = bench.enqueue()
    assert bench.take(slot) == [first]
    assert (slot.open, bench.dispatcher.waiting, slot.idle) == (1, 0, False)
    assert first.batch is not None
    assert first.batch.instance is slot
    assert bench.take(slot) is None
    assert (slot.idle, slot.wakeups) == (True, 0)
    second = bench.enqueue()
    assert (slot.idle, slot.wakeups) == (False, 1)
    assert bench.take(slot) == [second]


def test_one_request_wakes_one_instance(bench: DispatcherBench) -> None:
    slots = [WakeCountingSlot(0), WakeCountingSlot(1)]
    for slot in slots:
        bench.take(slot)
        bench.take(slot)  # asking twice does not add it twice
    bench.enqueue()
    assert [slot.wakeups for slot in slots] == [1, 0]
    bench.enqueue()
    bench.enqueue()
    assert [slot.wakeups for slot in slots] == [1, 1]


def test_taking_a_batch_wakes_the_next_idle_instance(bench: DispatcherBench) -> None:
    busy, idle = WakeCountingSlot(0), WakeCountingSlot(1)
    bench.take(idle)
    bench.scheduler.silent = True
    bench.enqueue()
    bench.enqueue()
    assert idle.wakeups == 0
    bench.scheduler.silent = False
    assert bench.take(busy)
    assert idle.wakeups == 1


def test_an_instance_that_takes_a_batch_unprompted_is_not_idle(bench: DispatcherBench) -> None:
    early, other = WakeCountingSlot(0), WakeCountingSlot(1)
    bench.take(early)
    bench.take(other)
    bench.scheduler.silent = True
    bench.enqueue()
    bench.scheduler.silent = False
    assert bench.take(early)
    bench.enqueue()
    assert (early.wakeups, other.wakeups) == (0, 1), "the ring went to one that is busy"


def test_an_instance_is_woken_at_its_scheduled_time(bench: DispatcherBench) -> None:
    slot = WakeCountingSlot(0)
    bench.scheduler.due_ns = now_ns() + 20_000_000
    request = bench.enqueue()
    assert bench.take(slot) is None
    assert (slot.idle, slot.until_ns) == (True, bench.scheduler.due_ns)
    assert slot.woken.wait(WAIT_S)
    assert now_ns() >= bench.scheduler.due_ns
    assert not slot.idle
    assert bench.take(slot) == [request]


def test_an_instance_waits_for_the_latest_scheduled_time(bench: DispatcherBench) -> None:
    slot = WakeCountingSlot(0)
    bench.scheduler.due_ns = now_ns() + FAR_NS
    request = bench.enqueue()
    assert bench.take(slot) is None
    bench.scheduler.due_ns = now_ns() + 20_000_000
    assert bench.take(slot) is None
    assert slot.woken.wait(WAIT_S)
    assert bench.take(slot) == [request]


@pytest.mark.parametrize("change", ["taken", "withdrawn", "another time"])
def test_an_obsolete_time_wakes_no_instance(bench: DispatcherBench, change: str) -> None:
    slot, waited = WakeCountingSlot(0), threading.Event()
    due_ns = bench.scheduler.due_ns = now_ns() + 20_000_000
    bench.enqueue()
    assert bench.take(slot) is None
    if change == "taken":
        bench.scheduler.due_ns = 0
        assert bench.take(slot)
    elif change == "withdrawn":
        bench.dispatcher.unmark_idle(slot)
    else:
        bench.scheduler.due_ns = now_ns() + FAR_NS
        assert bench.take(slot) is None
    bench.timer.at(due_ns + 1, waited.set)
    assert waited.wait(WAIT_S)
    assert slot.wakeups == 0


def test_an_earlier_time_wakes_the_instance(bench: DispatcherBench) -> None:
    slot = WakeCountingSlot(0)
    bench.scheduler.due_ns = now_ns() + FAR_NS
    bench.enqueue()
    bench.take(slot)
    bench.enqueue()
    assert slot.wakeups == 0
    bench.scheduler.due_ns -= 1_000_000
    bench.enqueue()
    assert slot.wakeups == 1


def test_an_instance_that_is_not_idle_is_not_woken_until_it_asks_again(
    bench: DispatcherBench,
) -> None:
    slot = WakeCountingSlot(0)
    bench.take(slot)
    bench.dispatcher.unmark_idle(slot)
    bench.dispatcher.unmark_idle(slot)
    request = bench.enqueue()
    assert slot.wakeups == 0
    assert bench.take(slot) == [request]
    bench.take(slot)
    bench.enqueue()
    assert slot.wakeups == 1


def test_an_instance_at_its_limit_is_woken_when_it_has_capacity(bench: DispatcherBench) -> None:
    slot = WakeCountingSlot(0, max_open=1)
    bench.dispatcher.mark_bounded()
    first, second = bench.enqueue(), bench.enqueue()
    assert bench.take(slot) == [first]
    assert bench.take(slot) is None
    assert slot.idle
    bench.enqueue()
    assert slot.wakeups == 0
    with bench.dispatcher.lock:
        bench.dispatcher.release(first, reschedule=False)
    assert slot.wakeups == 1
    assert bench.take(slot) == [second]


def test_an_instance_marked_idle_is_woken_by_the_next_request(bench: DispatcherBench) -> None:
    slot = WakeCountingSlot(0)
    bench.scheduler.error = ValueError("do not ask")
    assert bench.dispatcher.mark_idle(slot)
    assert bench.dispatcher.mark_idle(slot)
    bench.scheduler.error = None
    bench.enqueue()
    bench.enqueue()
    assert slot.wakeups == 1


def test_a_raising_scheduler_leaves_the_idle_list_consistent(bench: DispatcherBench) -> None:
    slot = WakeCountingSlot(0)
    bench.scheduler.error = ValueError("not today")
    with pytest.raises(ValueError, match="not today"):
        bench.take(slot)
    assert not slot.idle
    bench.scheduler.error = None
    request = bench.enqueue()
    assert bench.take(slot) == [request]


def test_an_error_of_the_scheduler_in_wake_is_reported(bench: DispatcherBench) -> None:
    slot = WakeCountingSlot(0)
    bench.take(slot)
    bench.scheduler.error = ValueError("not today")
    bench.dispatcher.wake()
    assert bench.failures == [bench.scheduler.error]
    bench.scheduler.error = None
    bench.enqueue()
    assert slot.wakeups == 1


@pytest.mark.parametrize("method", ["take", "take_or_idle"])
def test_a_batch_is_taken_even_if_waking_the_next_instance_fails(
    bench: DispatcherBench, method: str
) -> None:
    error = ValueError("not today")
    bench.take(WakeCountingSlot(1))
    bench.scheduler.silent = True
    requests = [bench.enqueue(), bench.enqueue()]
    bench.scheduler.silent = False
    bench.scheduler.error, bench.scheduler.failing = error, 1
    take = {
        "take": lambda slot: bench.dispatcher.take(slot, 9),
        "take_or_idle": bench.dispatcher.take_or_idle,
    }[method]
    assert take(WakeCountingSlot(0)).requests == requests[:1]
    assert bench.failures == [error]


def test_after_close_no_batch_is_taken_and_no_instance_is_idle(bench: DispatcherBench) -> None:
    idle, late = WakeCountingSlot(0), WakeCountingSlot(1)
    bench.take(idle)
    bench.dispatcher.close()
    assert (idle.wakeups, idle.idle) == (1, False)
    bench.enqueue()
    assert bench.take(late) is None
    assert not bench.dispatcher.mark_idle(late)
    assert (late.idle, late.wakeups, idle.wakeups) == (False, 0, 1)


def test_responses_are_always_flushed_without_the_lock(bench: DispatcherBench) -> None:
    held: list[Any] = []
    bench.dispatcher.flush = lambda: held.append(bench.dispatcher.lock._is_owned())  # type: ignore[attr-defined]
    bench.take(WakeCountingSlot(0))
    bench.enqueue()
    bench.take(WakeCountingSlot(1))
    bench.dispatcher.wake()
    assert held
    assert not any(held)


def test_an_instance_without_work_is_woken_before_one_that_would_prefetch(
    bench: DispatcherBench,
) -> None:
    busy, free = WakeCountingSlot(0), WakeCountingSlot(1)
    first = bench.enqueue()
    assert bench.take(busy) == [first]
    assert bench.take(busy) is None  # it is the first idle instance
    assert bench.take(free) is None
    bench.enqueue()
    assert (busy.wakeups, free.wakeups) == (0, 1)
