from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pytest

from tritonpy.api.contexts import InstanceContext
from tritonpy.api.scheduler import UNBOUNDED, Scheduler, SchedulerContext
from tritonpy.runners.direct_scheduler import DirectScheduler
from tritonpy.runners.dispatcher import Dispatcher
from tritonpy.runners.slot import Slot
from tritonpy.runners.timer import Timer
from tritonpy_types import Batch, InferRequest
from tritonpy_types.clock import now_ns

WAIT_S = 10
CONTEXT = SchedulerContext("m", 1, None, None, None, None)


class Instances:
    """Threads that take batches as a runner does, and the batches that they took."""

    def __init__(self, dispatcher: Dispatcher, count: int, max_open: int | None = None) -> None:
        self.taken: list[tuple[int, InferRequest]] = []
        self._dispatcher = dispatcher
        self._changed = threading.Condition()
        self.slots = [
            Slot(InstanceContext(f"m_0_{index}", "CPU", 0, index, max_open=max_open))
            for index in range(count)
        ]
        self.threads = [
            threading.Thread(target=self._run, args=(slot,), daemon=True) for slot in self.slots
        ]

    def wait_for(self, count: int) -> list[tuple[int, InferRequest]]:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.taken) >= count, WAIT_S), (
                f"{len(self.taken)} of {count}"
            )
            return list(self.taken)

    def _run(self, slot: Slot) -> None:
        while self._dispatcher.wait_ready(slot):
            batch = self._dispatcher.take(slot, UNBOUNDED)
            if batch is not None:
                with self._changed:
                    self.taken += [(slot.index, request) for request in batch.requests]
                    self._changed.notify_all()


@contextmanager
def dispatching(
    scheduler: Scheduler, instances: int, max_open: int | None = None
) -> Iterator[tuple[Dispatcher, Instances]]:
    timer = Timer()
    dispatcher = Dispatcher(timer)
    dispatcher.attach(scheduler)
    crew = Instances(dispatcher, instances, max_open)
    for thread in crew.threads:
        thread.start()
    try:
        yield dispatcher, crew
    finally:
        dispatcher.close()
        timer.stop()
        for thread in crew.threads:
            thread.join(WAIT_S)
            assert not thread.is_alive()


def enqueue(dispatcher: Dispatcher, request: InferRequest) -> None:
    with dispatcher.lock:
        request.queued_ns = now_ns()
        dispatcher.enqueue(request)


def request() -> InferRequest:
    return InferRequest("m", {}, None)


@pytest.mark.parametrize("instances", [1, 3])
def test_no_wake_up_is_lost_between_many_producers_and_instances(instances: int) -> None:
    rounds, producers = 150, 3
    with dispatching(DirectScheduler(CONTEXT), instances) as (dispatcher, crew):
        start, taken = threading.Barrier(producers + 1), threading.Barrier(producers + 1)

        def produce() -> None:
            for number in range(rounds):
                start.wait(WAIT_S)
                for _ in range(number % 3 + 1):
                    enqueue(dispatcher, request())
                taken.wait(WAIT_S)

        threads = [threading.Thread(target=produce, daemon=True) for _ in range(producers)]
        for thread in threads:
            thread.start()
        total = 0
        for number in range(rounds):
            start.wait(WAIT_S)
            total += producers * (number % 3 + 1)
            crew.wait_for(total)  # all instances sleep before the next round begins
            taken.wait(WAIT_S)
        for thread in threads:
            thread.join()
        assert dispatcher.waiting == 0
    assert len({id(each) for _, each in crew.taken}) == total == len(crew.taken)


class ScheduledAt(DirectScheduler):
    """Has a batch for one instance only, from a given time on."""

    instance, due_ns = 0, 0

    def ready(self, instance: int, now_ns: int) -> bool | int:
        if instance != self.instance or not self._queue:
            return False
        return True if now_ns >= self.due_ns else self.due_ns


def test_an_instance_checks_again_at_the_scheduled_time() -> None:
    scheduler = ScheduledAt(CONTEXT)
    scheduler.due_ns = now_ns() + 20_000_000
    with dispatching(scheduler, 2) as (dispatcher, crew):
        enqueue(dispatcher, request())
        crew.wait_for(1)
        assert now_ns() >= scheduler.due_ns


def test_the_intended_instance_is_woken() -> None:
    scheduler = ScheduledAt(CONTEXT)
    with dispatching(scheduler, 3) as (dispatcher, crew):
        for count, instance in enumerate((2, 0, 1, 2, 1), start=1):
            scheduler.instance = instance
            enqueue(dispatcher, request())
            assert crew.wait_for(count)[-1][0] == instance


def test_wake_queries_the_scheduler_again() -> None:
    scheduler = ScheduledAt(CONTEXT)
    scheduler.instance = 7
    with dispatching(scheduler, 1) as (dispatcher, crew):
        enqueue(dispatcher, request())
        scheduler.instance = 0
        dispatcher.wake()
        crew.wait_for(1)


def test_a_limit_holds_requests_back_until_one_is_released() -> None:
    with dispatching(DirectScheduler(CONTEXT), 1, max_open=2) as (dispatcher, crew):
        dispatcher.mark_bounded()
        for _ in range(3):
            enqueue(dispatcher, request())
        (_, first), _ = crew.wait_for(2)
        assert dispatcher.waiting == 1
        with dispatcher.lock:
            dispatcher.release(first, reschedule=False)
        crew.wait_for(3)
        assert dispatcher.waiting == 0


class Expiring(DirectScheduler):
    """Has a timeout every millisecond and drops all requests when allowed."""

    def __init__(self, dropped: Callable[[InferRequest], None]) -> None:
        super().__init__(CONTEXT)
        self._dropped = dropped
        self.may = False

    def ready(self, instance: int, now_ns: int) -> bool:
        return False

    def expire(self, now_ns: int) -> int | None:
        if not self.may:
            return now_ns + 1_000_000
        for each in self._queue:
            self._dropped(each)
        self._queue.clear()
        return None


def test_requests_expire_while_instances_sleep_and_are_flushed_without_the_lock() -> None:
    done, dropped, locked = threading.Event(), [], []
    scheduler = Expiring(dropped.append)
    with dispatching(scheduler, 1) as (dispatcher, _):

        def flush() -> None:
            if dropped:
                locked.append(dispatcher.lock._is_owned())
                done.set()

        dispatcher.flush = flush
        waiting = [request(), request()]
        for each in waiting:
            enqueue(dispatcher, each)
        scheduler.may = True
        assert done.wait(WAIT_S)
        assert dropped == waiting
        assert not any(locked)


class WithoutInstances(Scheduler):
    """A scheduler without instances that records whether the lock was held."""

    uses_instances = False

    def __init__(self, held: Callable[[], bool]) -> None:
        super().__init__(CONTEXT)
        self._held = held
        self.seen: list[tuple[str, bool]] = []

    def enqueue(self, request: InferRequest) -> None:
        self.seen.append(("enqueue", self._held()))

    def cancel(self, request: InferRequest) -> None:
        self.seen.append(("cancel", self._held()))


def test_a_scheduler_without_instances_is_called_without_the_lock() -> None:
    dispatcher = Dispatcher(Timer())
    scheduler = WithoutInstances(dispatcher.lock._is_owned)
    dispatcher.attach(scheduler)
    dispatcher.enqueue(request())
    dispatcher.cancel(request())
    assert scheduler.seen == [("enqueue", False), ("cancel", False)]
    assert dispatcher.waiting == 0


def test_closing_ends_every_sleeping_instance() -> None:
    with dispatching(DirectScheduler(CONTEXT), 4):
        pass


def test_a_taken_request_knows_its_batch() -> None:
    batches: Sequence[Batch | None]
    with dispatching(DirectScheduler(CONTEXT), 1) as (dispatcher, crew):
        each = request()
        enqueue(dispatcher, each)
        crew.wait_for(1)
        batches = [each.batch]
        assert crew.slots[0].open == 1
    assert batches[0] is not None
    assert batches[0].instance is crew.slots[0]
    assert batches[0].start_ns >= each.queued_ns
