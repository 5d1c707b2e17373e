"""Instances without a thread: they take a batch or are noted as idle, and are rung."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tritonpy.api.backend import InstanceContext
from tritonpy.api.scheduler import SchedulerContext
from tritonpy.clock import now_ns
from tritonpy.direct import DirectScheduler
from tritonpy.runners.dispatcher import Dispatcher
from tritonpy.runners.slot import Slot
from tritonpy.runners.timer import Timer
from tritonpy.types import InferRequest

PATIENCE_S = 10
FAR_NS = 3_600_000_000_000


class Told(Slot):
    """Counts its rings."""

    def __init__(self, index: int, max_open: int | None = None) -> None:
        super().__init__(InstanceContext(f"m_0_{index}", "CPU", 0, index, max_open=max_open))
        self.rings = 0
        self.rung = threading.Event()

    def ring(self) -> None:
        self.rings += 1
        self.rung.set()


class At(DirectScheduler):
    """Has a batch from a time on, or says nothing of it, or raises."""

    def __init__(self) -> None:
        super().__init__(SchedulerContext("m", 1, None, None, None, None))  # type: ignore[arg-type]
        self.due_ns = 0
        self.silent = False
        self.error: Exception | None = None

    def ready(self, instance: int, now_ns: int) -> bool | int:
        if self.error is not None:
            raise self.error
        if not self._queue or self.silent:
            return False
        return True if now_ns >= self.due_ns else self.due_ns


class Hall:
    """A dispatcher, its scheduler and its timer."""

    def __init__(self) -> None:
        self.timer, self.scheduler = Timer(), At()
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
def hall() -> Iterator[Hall]:
    it = Hall()
    yield it
    it.timer.stop()


def test_what_waits_is_taken_and_what_comes_later_rings(hall: Hall) -> None:
    slot = Told(0)
    first = hall.enqueue()
    assert hall.take(slot) == [first]
    assert (slot.open, hall.dispatcher.waiting, slot.idle) == (1, 0, False)
    assert first.batch is not None
    assert first.batch.instance is slot
    assert hall.take(slot) is None
    assert (slot.idle, slot.rings) == (True, 0)
    second = hall.enqueue()
    assert (slot.idle, slot.rings) == (False, 1)
    assert hall.take(slot) == [second]


def test_one_request_rings_one_instance(hall: Hall) -> None:
    slots = [Told(0), Told(1)]
    for slot in slots:
        hall.take(slot)
        hall.take(slot)  # asking twice does not make it idle twice
    hall.enqueue()
    assert [slot.rings for slot in slots] == [1, 0]
    hall.enqueue()
    hall.enqueue()
    assert [slot.rings for slot in slots] == [1, 1]


def test_who_takes_a_batch_rings_the_next_who_is_idle(hall: Hall) -> None:
    busy, idle = Told(0), Told(1)
    hall.take(idle)
    hall.scheduler.silent = True
    hall.enqueue()
    hall.enqueue()
    assert idle.rings == 0
    hall.scheduler.silent = False
    assert hall.take(busy)
    assert idle.rings == 1


def test_an_instance_that_finds_a_batch_without_being_rung_is_not_idle_any_more(hall: Hall) -> None:
    early, other = Told(0), Told(1)
    hall.take(early)
    hall.take(other)
    hall.scheduler.silent = True
    hall.enqueue()
    hall.scheduler.silent = False
    assert hall.take(early)
    hall.enqueue()
    assert (early.rings, other.rings) == (0, 1), "the ring went to one that is busy"


def test_an_instance_that_waits_for_a_time_is_rung_when_it_comes(hall: Hall) -> None:
    slot = Told(0)
    hall.scheduler.due_ns = now_ns() + 20_000_000
    request = hall.enqueue()
    assert hall.take(slot) is None
    assert (slot.idle, slot.until_ns) == (True, hall.scheduler.due_ns)
    assert slot.rung.wait(PATIENCE_S)
    assert now_ns() >= hall.scheduler.due_ns
    assert not slot.idle
    assert hall.take(slot) == [request]


def test_an_instance_that_asks_again_waits_for_the_time_that_it_was_told_last(hall: Hall) -> None:
    slot = Told(0)
    hall.scheduler.due_ns = now_ns() + FAR_NS
    request = hall.enqueue()
    assert hall.take(slot) is None
    hall.scheduler.due_ns = now_ns() + 20_000_000
    assert hall.take(slot) is None
    assert slot.rung.wait(PATIENCE_S)
    assert hall.take(slot) == [request]


@pytest.mark.parametrize("change", ["taken", "withdrawn", "another time"])
def test_a_time_that_is_not_waited_for_any_more_rings_nobody(hall: Hall, change: str) -> None:
    slot, waited = Told(0), threading.Event()
    due_ns = hall.scheduler.due_ns = now_ns() + 20_000_000
    hall.enqueue()
    assert hall.take(slot) is None
    if change == "taken":
        hall.scheduler.due_ns = 0
        assert hall.take(slot)
    elif change == "withdrawn":
        hall.dispatcher.withdraw(slot)
    else:
        hall.scheduler.due_ns = now_ns() + FAR_NS
        assert hall.take(slot) is None
    hall.timer.at(due_ns + 1, waited.set)
    assert waited.wait(PATIENCE_S)
    assert slot.rings == 0


def test_a_scheduler_that_names_an_earlier_time_than_the_instance_waits_for_rings_it(hall: Hall) -> None:
    slot = Told(0)
    hall.scheduler.due_ns = now_ns() + FAR_NS
    hall.enqueue()
    hall.take(slot)
    hall.enqueue()
    assert slot.rings == 0
    hall.scheduler.due_ns -= 1_000_000
    hall.enqueue()
    assert slot.rings == 1


def test_an_instance_that_was_withdrawn_is_not_rung_until_it_asks_again(hall: Hall) -> None:
    slot = Told(0)
    hall.take(slot)
    hall.dispatcher.withdraw(slot)
    hall.dispatcher.withdraw(slot)
    request = hall.enqueue()
    assert slot.rings == 0
    assert hall.take(slot) == [request]
    hall.take(slot)
    hall.enqueue()
    assert slot.rings == 1


def test_an_instance_without_room_is_rung_when_it_has_some(hall: Hall) -> None:
    slot = Told(0, max_open=1)
    hall.dispatcher.bound()
    first, second = hall.enqueue(), hall.enqueue()
    assert hall.take(slot) == [first]
    assert hall.take(slot) is None
    assert slot.idle
    hall.enqueue()
    assert slot.rings == 0
    with hall.dispatcher.lock:
        hall.dispatcher.left(first, reschedule=False)
    assert slot.rings == 1
    assert hall.take(slot) == [second]


def test_an_instance_rests_without_a_question_and_is_rung_by_the_next_request(hall: Hall) -> None:
    slot = Told(0)
    hall.scheduler.error = ValueError("do not ask")
    assert hall.dispatcher.rest(slot)
    assert hall.dispatcher.rest(slot)
    hall.scheduler.error = None
    hall.enqueue()
    hall.enqueue()
    assert slot.rings == 1


def test_a_scheduler_that_raises_leaves_nobody_idle_by_half(hall: Hall) -> None:
    slot = Told(0)
    hall.scheduler.error = ValueError("not today")
    with pytest.raises(ValueError, match="not today"):
        hall.take(slot)
    assert not slot.idle
    hall.scheduler.error = None
    request = hall.enqueue()
    assert hall.take(slot) == [request]


def test_to_wake_a_scheduler_that_raises_is_its_own_failure(hall: Hall) -> None:
    slot = Told(0)
    hall.take(slot)
    hall.scheduler.error = ValueError("not today")
    hall.dispatcher.wake()
    assert hall.failures == [hall.scheduler.error]
    hall.scheduler.error = None
    hall.enqueue()
    assert slot.rings == 1


@pytest.mark.parametrize("method", ["take", "take_or_idle"])
def test_a_batch_is_taken_though_the_scheduler_fails_when_the_next_instance_is_to_be_rung(
    hall: Hall, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    error = ValueError("not today")

    def ready(instance: int, now_ns: int) -> bool | int:
        if instance == 1:
            raise error
        return At.ready(hall.scheduler, instance, now_ns)

    hall.take(Told(1))
    hall.scheduler.silent = True
    requests = [hall.enqueue(), hall.enqueue()]
    hall.scheduler.silent = False
    monkeypatch.setattr(hall.scheduler, "ready", ready)
    take = {"take": lambda slot: hall.dispatcher.take(slot, 9), "take_or_idle": hall.dispatcher.take_or_idle}[method]
    assert take(Told(0)).requests == requests[:1]
    assert hall.failures == [error]


def test_after_the_end_nothing_is_taken_and_nobody_rests(hall: Hall) -> None:
    idle, late = Told(0), Told(1)
    hall.take(idle)
    hall.dispatcher.close()
    assert (idle.rings, idle.idle) == (1, False)
    hall.enqueue()
    assert hall.take(late) is None
    assert not hall.dispatcher.rest(late)
    assert (late.idle, late.rings, idle.rings) == (False, 0, 1)


def test_answers_are_flushed_without_the_lock_whatever_is_found(hall: Hall) -> None:
    held: list[Any] = []
    hall.dispatcher.flush = lambda: held.append(hall.dispatcher.lock._is_owned())  # type: ignore[attr-defined]
    hall.take(Told(0))
    hall.enqueue()
    hall.take(Told(1))
    hall.dispatcher.wake()
    assert held
    assert not any(held)


def test_an_instance_that_has_nothing_to_do_is_rung_before_one_that_would_only_keep_more_ready(hall: Hall) -> None:
    busy, free = Told(0), Told(1)
    first = hall.enqueue()
    assert hall.take(busy) == [first]
    assert hall.take(busy) is None  # it stands first in line for more
    assert hall.take(free) is None
    hall.enqueue()
    assert (busy.rings, free.rings) == (0, 1)
