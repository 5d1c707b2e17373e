"""The dispatcher on the event loop: coalesced wake-ups and timers of the loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable

from tritonpy.api.contexts import InstanceContext
from tritonpy.api.scheduler import SchedulerContext
from tritonpy.runners.direct_scheduler import DirectScheduler
from tritonpy.runners.dispatcher import Dispatcher
from tritonpy.runners.slot import Slot
from tritonpy.runners.timer import Timer
from tritonpy.runners.wakeups import Wakeups
from tritonpy_types import Batch, InferRequest
from tritonpy_types.clock import now_ns


class RecordingSlot(Slot):
    """Records the threads that wake it."""

    def __init__(self) -> None:
        super().__init__(InstanceContext("m_0_0", "CPU", 0, 0, max_open=2))
        self.wakeups: list[int] = []
        self.woken = asyncio.Event()

    def wake(self) -> None:
        self.wakeups.append(threading.get_ident())
        self.woken.set()


class CountingScheduler(DirectScheduler):
    """Counts its queries; has no batch before a given time."""

    def __init__(self) -> None:
        super().__init__(SchedulerContext("m", 1, None, None, None, None))  # type: ignore[arg-type]
        self.queries = 0
        self.due_ns = 0

    def ready(self, instance: int, now_ns: int) -> bool | int:
        self.queries += 1
        ready = super().ready(instance, now_ns)
        return self.due_ns if ready is True and now_ns < self.due_ns else ready


class DispatcherBench:
    """A dispatcher with the wake-ups of the running loop."""

    def __init__(self) -> None:
        self.wakeups, self.timer, self.scheduler = Wakeups(), Timer(), CountingScheduler()
        self.wakeups.attach(asyncio.get_running_loop())
        self.dispatcher = Dispatcher(self.timer, self.wakeups)
        self.dispatcher.attach(self.scheduler)

    def enqueue(self) -> InferRequest:
        request = InferRequest("m", {}, None)  # type: ignore[arg-type]
        with self.dispatcher.lock:
            request.queued_ns = now_ns()
            self.dispatcher.enqueue(request)
        return request

    def answer(self, *requests: InferRequest) -> None:
        with self.dispatcher.lock:
            for request in requests:
                self.dispatcher.release(request, reschedule=False)


def play(act: Callable[[DispatcherBench], Awaitable[None]]) -> None:
    async def turn() -> None:
        bench = DispatcherBench()
        try:
            await act(bench)
        finally:
            bench.wakeups.detach()
            bench.timer.stop()

    asyncio.run(asyncio.wait_for(turn(), 30))


def test_responses_of_one_iteration_wake_once_at_its_end() -> None:
    async def act(bench: DispatcherBench) -> None:
        slot, dispatcher = RecordingSlot(), bench.dispatcher
        dispatcher.mark_bounded()
        running = [bench.enqueue(), bench.enqueue()]
        assert [dispatcher.take_or_idle(slot) is not None for _ in range(3)] == [True, True, False]
        waits = bench.enqueue()
        await asyncio.sleep(0)
        before = bench.scheduler.queries
        bench.answer(*running)
        assert (bench.scheduler.queries, slot.wakeups) == (before, [])
        await asyncio.sleep(0)
        assert (bench.scheduler.queries, len(slot.wakeups)) == (before + 1, 1)
        batch = dispatcher.take_or_idle(slot)
        assert batch is not None
        assert batch.requests == [waits]

    play(act)


def test_responses_of_another_thread_wake_immediately() -> None:
    async def act(bench: DispatcherBench) -> None:
        slot, dispatcher = RecordingSlot(), bench.dispatcher
        dispatcher.mark_bounded()
        running = [bench.enqueue(), bench.enqueue()]
        while dispatcher.take_or_idle(slot) is not None:
            pass
        bench.enqueue()
        await asyncio.sleep(0)
        assert not slot.wakeups
        thread = threading.Thread(target=bench.answer, args=running)
        thread.start()
        thread.join()  # the event loop is blocked meanwhile
        assert slot.wakeups == [thread.ident]

    play(act)


def test_a_scheduled_time_fires_on_the_loop_itself() -> None:
    async def act(bench: DispatcherBench) -> None:
        slot = RecordingSlot()
        bench.scheduler.due_ns = now_ns() + 2_000_000
        bench.enqueue()
        assert bench.dispatcher.take_or_idle(slot) is None
        await slot.woken.wait()
        assert now_ns() >= bench.scheduler.due_ns
        assert slot.wakeups == [threading.get_ident()]
        assert bench.dispatcher.take_or_idle(slot) is not None

    play(act)


class InlineSlot(RecordingSlot):
    """Runs in the thread that would wake it, if it is `willing`."""

    willing = True

    def __init__(self, dispatcher: Dispatcher) -> None:
        super().__init__()
        self.batches: list[Batch] = []
        self._dispatcher = dispatcher

    def can_run_inline(self) -> bool:
        return self.willing

    def run(self, batch: Batch) -> None:
        assert not self._dispatcher.lock._is_owned()  # type: ignore[attr-defined]
        self.batches.append(batch)


def idle_slot(bench: DispatcherBench) -> InlineSlot:
    """Return an idle instance of a dispatcher whose last batch had several requests."""
    slot = InlineSlot(bench.dispatcher)
    bench.dispatcher._last_was_single = False
    assert bench.dispatcher.take_or_idle(slot) is None
    return slot


def test_an_inline_instance_gets_its_batch_at_the_end_of_the_iteration() -> None:
    async def act(bench: DispatcherBench) -> None:
        slot = idle_slot(bench)
        queries = bench.scheduler.queries
        first = bench.enqueue()
        assert slot.batches == []
        await asyncio.sleep(0)
        assert [batch.requests for batch in slot.batches] == [[first]]
        assert (bench.scheduler.queries, slot.wakeups, slot.idle, slot.open) == (
            queries + 1,
            [],
            False,
            1,
        )
        assert first.batch is slot.batches[0]
        bench.enqueue()
        await asyncio.sleep(0)
        assert len(slot.batches) == 1  # it is busy: its owner takes the next batch

    play(act)


def test_an_instance_that_cannot_run_inline_is_woken() -> None:
    async def act(bench: DispatcherBench) -> None:
        slot = idle_slot(bench)
        slot.willing = False
        bench.enqueue()
        await asyncio.sleep(0)
        assert (slot.batches, slot.wakeups) == ([], [threading.get_ident()])

    play(act)


def test_one_of_several_idle_instances_is_woken() -> None:
    async def act(bench: DispatcherBench) -> None:
        slots = [idle_slot(bench), idle_slot(bench)]
        bench.enqueue()
        await asyncio.sleep(0)
        assert [slot.batches for slot in slots] == [[], []]
        assert sorted(len(slot.wakeups) for slot in slots) == [0, 1]

    play(act)


def test_a_batch_that_is_not_due_is_not_run_inline() -> None:
    async def act(bench: DispatcherBench) -> None:
        slot = idle_slot(bench)
        bench.scheduler.due_ns = now_ns() + 10**12
        bench.enqueue()
        await asyncio.sleep(0)
        assert slot.batches == []
        assert bench.dispatcher.take_or_idle(slot) is None

    play(act)


def test_a_scheduler_error_at_the_end_of_an_iteration_is_reported() -> None:
    async def act(bench: DispatcherBench) -> None:
        slot, failures = idle_slot(bench), list[Exception]()
        bench.dispatcher.failed = failures.append
        bench.enqueue()
        bench.scheduler.due_ns = "never"  # type: ignore[assignment]  # which no time is compared with
        await asyncio.sleep(0)
        assert [type(error) for error in failures] == [TypeError]
        assert (slot.batches, slot.idle) == ([], True)

    play(act)
