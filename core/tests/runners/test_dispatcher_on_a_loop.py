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
from tritonpy.types import InferRequest


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
