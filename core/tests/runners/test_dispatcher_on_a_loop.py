"""What the dispatcher does differently while the event loop calls it: the turn's end is soon enough, and the loop keeps the time."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable

from tritonpy.api.backend import InstanceContext
from tritonpy.api.scheduler import SchedulerContext
from tritonpy.clock import now_ns
from tritonpy.direct import DirectScheduler
from tritonpy.runners.dispatcher import Dispatcher
from tritonpy.runners.rings import Rings
from tritonpy.runners.slot import Slot
from tritonpy.runners.timer import Timer
from tritonpy.types import Batch, InferRequest


class Noted(Slot):
    """Notes the threads that ring it."""

    def __init__(self) -> None:
        super().__init__(InstanceContext("m_0_0", "CPU", 0, 0, max_open=2))
        self.rings: list[int] = []
        self.rung = asyncio.Event()

    def ring(self) -> None:
        self.rings.append(threading.get_ident())
        self.rung.set()


class Asked(DirectScheduler):
    """Counts the questions; has nothing before a time."""

    def __init__(self) -> None:
        super().__init__(SchedulerContext("m", 1, None, None, None, None))  # type: ignore[arg-type]
        self.questions = 0
        self.due_ns = 0

    def ready(self, instance: int, now_ns: int) -> bool | int:
        self.questions += 1
        ready = super().ready(instance, now_ns)
        return self.due_ns if ready is True and now_ns < self.due_ns else ready


class Hall:
    """A dispatcher whose rings are those of the running loop."""

    def __init__(self) -> None:
        self.rings, self.timer, self.scheduler = Rings(), Timer(), Asked()
        self.rings.attach(asyncio.get_running_loop())
        self.dispatcher = Dispatcher(self.timer, self.rings)
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
                self.dispatcher.left(request, reschedule=False)


def play(act: Callable[[Hall], Awaitable[None]]) -> None:
    async def turn() -> None:
        hall = Hall()
        try:
            await act(hall)
        finally:
            hall.rings.detach()
            hall.timer.stop()

    asyncio.run(asyncio.wait_for(turn(), 30))


def test_answers_of_one_turn_ring_once_at_its_end() -> None:
    async def act(hall: Hall) -> None:
        slot, dispatcher = Noted(), hall.dispatcher
        dispatcher.bound()
        running = [hall.enqueue(), hall.enqueue()]
        assert [dispatcher.take_or_idle(slot) is not None for _ in range(3)] == [True, True, False]
        waits = hall.enqueue()
        await asyncio.sleep(0)
        before = hall.scheduler.questions
        hall.answer(*running)
        assert (hall.scheduler.questions, slot.rings) == (before, [])
        await asyncio.sleep(0)
        assert (hall.scheduler.questions, len(slot.rings)) == (before + 1, 1)
        batch = dispatcher.take_or_idle(slot)
        assert batch is not None
        assert batch.requests == [waits]

    play(act)


def test_answers_of_another_thread_ring_at_once() -> None:
    async def act(hall: Hall) -> None:
        slot, dispatcher = Noted(), hall.dispatcher
        dispatcher.bound()
        running = [hall.enqueue(), hall.enqueue()]
        while dispatcher.take_or_idle(slot) is not None:
            pass
        hall.enqueue()
        await asyncio.sleep(0)
        assert not slot.rings
        thread = threading.Thread(target=hall.answer, args=running)
        thread.start()
        thread.join()  # the loop stands still meanwhile
        assert slot.rings == [thread.ident]

    play(act)


def test_the_time_that_a_scheduler_names_comes_on_the_loop_itself() -> None:
    async def act(hall: Hall) -> None:
        slot = Noted()
        hall.scheduler.due_ns = now_ns() + 2_000_000
        hall.enqueue()
        assert hall.dispatcher.take_or_idle(slot) is None
        await slot.rung.wait()
        assert now_ns() >= hall.scheduler.due_ns
        assert slot.rings == [threading.get_ident()]
        assert hall.dispatcher.take_or_idle(slot) is not None

    play(act)


class Here(Noted):
    """Is run in the thread that would ring it, if it is `willing`."""

    willing = True

    def __init__(self, dispatcher: Dispatcher) -> None:
        super().__init__()
        self.batches: list[Batch] = []
        self._dispatcher = dispatcher

    def runs_here(self) -> bool:
        return self.willing

    def run(self, batch: Batch) -> None:
        assert not self._dispatcher.lock._is_owned()  # type: ignore[attr-defined]
        self.batches.append(batch)


def resting(hall: Hall) -> Here:
    """Return an idle instance of a dispatcher whose batches are of several requests."""
    slot = Here(hall.dispatcher)
    hall.dispatcher._lonely = False
    assert hall.dispatcher.take_or_idle(slot) is None
    return slot


def test_an_instance_that_runs_here_is_given_its_batch_at_the_end_of_the_turn() -> None:
    async def act(hall: Hall) -> None:
        slot = resting(hall)
        questions = hall.scheduler.questions
        first = hall.enqueue()
        assert slot.batches == []
        await asyncio.sleep(0)
        assert [batch.requests for batch in slot.batches] == [[first]]
        assert (hall.scheduler.questions, slot.rings, slot.idle, slot.open) == (questions + 1, [], False, 1)
        assert first.batch is slot.batches[0]
        hall.enqueue()
        await asyncio.sleep(0)
        assert len(slot.batches) == 1  # it is busy: who runs it asks for the next one

    play(act)


def test_an_instance_that_may_not_run_here_is_rung() -> None:
    async def act(hall: Hall) -> None:
        slot = resting(hall)
        slot.willing = False
        hall.enqueue()
        await asyncio.sleep(0)
        assert (slot.batches, slot.rings) == ([], [threading.get_ident()])

    play(act)


def test_among_several_idle_ones_one_is_rung() -> None:
    async def act(hall: Hall) -> None:
        slots = [resting(hall), resting(hall)]
        hall.enqueue()
        await asyncio.sleep(0)
        assert [slot.batches for slot in slots] == [[], []]
        assert sorted(len(slot.rings) for slot in slots) == [0, 1]

    play(act)


def test_what_is_not_due_yet_is_not_run_here() -> None:
    async def act(hall: Hall) -> None:
        slot = resting(hall)
        hall.scheduler.due_ns = now_ns() + 10**12
        hall.enqueue()
        await asyncio.sleep(0)
        assert slot.batches == []
        assert hall.dispatcher.take_or_idle(slot) is None

    play(act)


def test_a_scheduler_that_fails_at_the_end_of_a_turn_is_its_own_failure() -> None:
    async def act(hall: Hall) -> None:
        slot, failures = resting(hall), list[Exception]()
        hall.dispatcher.failed = failures.append
        hall.enqueue()
        hall.scheduler.due_ns = "never"  # type: ignore[assignment]  # which no time is compared with
        await asyncio.sleep(0)
        assert [type(error) for error in failures] == [TypeError]
        assert (slot.batches, slot.idle) == ([], True)

    play(act)
