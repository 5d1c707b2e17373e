"""Brings requests and instances of one model together: the lock, the scheduler, and who waits for what."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from enum import Enum, auto
from functools import partial

from tritonpy.api.scheduler import Scheduler
from tritonpy.clock import now_ns
from tritonpy.runners.rings import Rings
from tritonpy.runners.slot import PooledSlot, Slot
from tritonpy.runners.timer import Timer
from tritonpy.types import Batch, InferRequest

# Answers given while the lock is held wait until it is free: a sink is never called under a model's lock.
Flush = Callable[[], None]


class Step(Enum):
    """What a thread does next for an instance that has no thread of its own. END: the model is closed, or done with the instance."""

    EXECUTE = auto()
    IDLE = auto()
    END = auto()


class Dispatcher:
    """The shell round a scheduler. The calls of a scheduler with instances are made under `lock`.

    The lock is re-entrant because a scheduler may answer a request that it drops from inside any of its methods.
    """

    def __init__(self, timer: Timer, rings: Rings | None = None) -> None:
        self.lock = threading.RLock()
        self.waiting = 0  # requests enqueued and not taken
        self.flush: Flush = _nothing
        self.failed: Callable[[Exception], None] = _raise
        # Hands a request to a scheduler with instances without ringing any: `offered` does that for all. The caller holds the lock.
        self.offer: Callable[[InferRequest], None]
        # The same with requests that are alike, all or none of them.
        self.offer_alike: Callable[[Sequence[InferRequest]], bool]
        self._timer = timer
        self._rings = rings or Rings()
        self._rung = False  # a ring is due at the end of the loop's turn
        self._lonely = True  # the last batch was a single request
        self._idle: list[Slot] = []
        self._leaving: list[Slot] = []
        self._closed = False
        self._bounded = False
        self._armed_ns = 0
        self._scheduler: Scheduler

    def attach(self, scheduler: Scheduler) -> None:
        """Take the scheduler; done once, before the first request."""
        self._scheduler = scheduler
        self.offer = scheduler.enqueue
        self.offer_alike = scheduler.enqueue_alike if _means_its_enqueue_alike(type(scheduler)) else _none
        # Resolved once: most schedulers have nothing that expires and do not care about releases.
        self._expires = type(scheduler).expire is not Scheduler.expire
        self._wants_releases = type(scheduler).released is not Scheduler.released
        self._has_instances = scheduler.uses_instances

    def enqueue(self, request: InferRequest) -> None:
        """Hand `request` to the scheduler and ring an idle instance.

        The caller holds the lock, except for a scheduler without instances: that one calls other models.
        """
        self._scheduler.enqueue(request)
        if self._has_instances:
            self.offered(1, request.queued_ns)

    def offered(self, count: int, now_ns: int) -> None:
        """Take note that the scheduler has `count` more requests, and ring an idle instance; the lock is still the one that they came under."""
        self.waiting += count
        try:
            if self._expires:
                self._expire(now_ns)
            if self._idle and not self._rung:
                if self._lonely and self.waiting == 1:
                    self._ring(now_ns)  # one request at a time: nobody else is about to come
                else:
                    self._rung = True
                    self._rings.soon(self._ring_idle)
        except Exception as error:  # the scheduler has the requests: the caller must not answer them too
            self.failed(error)

    def wait_ready(self, slot: Slot) -> bool:
        """Park the calling thread until the scheduler has a batch for `slot`; False when the model is closed, or done with `slot`."""
        while True:
            if slot.handed is not None:
                return True
            with self.lock:
                if self._closed or slot.gone:
                    return False
                ready = self._scheduler.ready(slot.index, now_ns()) if slot.room() > 0 else False
                if ready is True:
                    return True
                slot.until_ns = 0 if ready is False else ready
                slot.idle = True
                self._idle.append(slot)
            self.flush()
            self.wait_ring(slot)

    def next_step(self, slot: PooledSlot) -> Step:
        """Say what the calling thread, which a pool lent to `slot`, does next. With IDLE it has nothing to do with `slot` any more.

        Where the scheduler named a time, the thread waits for that: no other thread has to wake up first.
        """
        while True:
            if slot.handed is not None:
                return Step.EXECUTE
            with self.lock:
                if self._closed or slot.gone:
                    return Step.END
                ready = self._scheduler.ready(slot.index, now_ns()) if slot.room() > 0 else False
                if ready is True:
                    return Step.EXECUTE
                slot.until_ns = until_ns = 0 if ready is False else ready
                slot.parked = until_ns > 0
                slot.idle = True
                self._idle.append(slot)
            try:
                self.flush()
            except (
                Exception
            ) as error:  # the instance may be with another thread by now: this one must not go on with it
                self.failed(error)
            if until_ns == 0 or not self._woken(slot, until_ns):
                return Step.IDLE

    def _woken(self, slot: PooledSlot, until_ns: int) -> bool:
        """Park the calling thread until `slot` is rung, or until `until_ns`; False where another thread has `slot` then."""
        if slot.bell.acquire(timeout=max(until_ns - now_ns(), 0) / 1e9):
            return True
        with self.lock:
            if slot.idle:
                slot.idle = slot.parked = False
                self._idle.remove(slot)
                return True
            if slot.parked:  # woken, and its owner has not woken this thread
                slot.parked = False
                return False
        slot.bell.acquire()  # woken between the time-out and the lock
        return True

    def hand_over(self, slot: PooledSlot) -> None:
        """Let a thread go on with `slot`, which the caller has."""
        with self.lock:
            slot.wake_thread()

    def wants(self, slot: Slot) -> bool:
        """Say whether the scheduler has a batch for `slot` right now."""
        with self.lock:
            return not self._closed and slot.room() > 0 and self._scheduler.ready(slot.index, now_ns()) is True

    def wait_ring(self, slot: Slot) -> None:
        """Park the calling thread, that of a `slot` that is idle, until it is rung or has to look again."""
        if slot.until_ns == 0:
            slot.bell.acquire()
            return
        wait_ns = slot.until_ns - now_ns()
        if slot.bell.acquire(timeout=max(wait_ns, 0) / 1e9):
            return
        with self.lock:
            if slot.idle:
                slot.idle = False
                self._idle.remove(slot)
                return
        slot.bell.acquire()  # rung between the time-out and the lock: take the ring, it must not wake a later wait

    def take(self, slot: Slot, limit: int) -> Batch | None:
        """Cut a batch of at most `limit` requests for `slot`, if the scheduler still has one."""
        with self.lock:
            now = now_ns()
            limit = min(limit, slot.room())
            ready = limit > 0 and self._scheduler.ready(slot.index, now) is True
            batch = self._cut(slot, now, limit) if ready else None
            if self._idle:
                self._ring_another(now)
        self.flush()
        return batch

    def take_or_idle(self, slot: Slot) -> Batch | None:
        """Cut a batch for `slot`; where there is none, note that it is idle: it will be rung."""
        with self.lock:
            if self._closed:
                return None
            now = now_ns()
            room = slot.room()
            ready = self._scheduler.ready(slot.index, now) if room > 0 else False
            batch = self._cut(slot, now, room) if ready is True else None
            if batch is not None:
                self.withdraw(slot)
                if self._idle:
                    self._ring_another(now)
            else:
                self._rest(slot, 0 if ready is True or ready is False else ready)
                if slot.until_ns:
                    ring = partial(self._ring_due, slot, slot.until_ns)
                    if not self._rings.at(slot.until_ns, ring):
                        self._timer.at(slot.until_ns, ring)
        self.flush()
        return batch

    def rest(self, slot: Slot) -> bool:
        """Note that `slot` is idle, without a question to the scheduler; False when the model is closed."""
        with self.lock:
            if not self._closed:
                self._rest(slot, 0)
            return not self._closed

    def rest_if_nothing_waits(self, slot: Slot) -> bool:
        """Note that `slot` is idle, unless a request waits or the model is closed; say whether it is."""
        with self.lock:
            if self.waiting or self._closed or slot.leaving:
                return False
            self._rest(slot, 0)
            return True

    def withdraw(self, slot: Slot) -> None:
        """Ring `slot` no more until it asks for a batch again."""
        with self.lock:
            if slot.idle:
                slot.idle = False
                self._idle.remove(slot)

    def lost(self, slot: Slot) -> None:
        """Take note that the memory of an instance is gone."""
        with self.lock:
            self._scheduler.lost(slot.index)
        self.flush()

    def restored(self, slot: Slot) -> None:
        """Record that an instance whose memory was lost serves again."""
        with self.lock:
            self._scheduler.restored(slot.index)
        self.flush()

    def take_back(self, requests: Sequence[InferRequest]) -> list[InferRequest]:
        """Let requests wait again whose instance ended before it executed them, oldest first; return those that cannot."""
        with self.lock:
            refused = list(self._scheduler.take_back(requests))
            for request in requests:
                if request not in refused and request.batch is not None:
                    request.batch.instance.open -= 1
                    request.batch = None
                    self.waiting += 1
                    if request.cancelled:  # its instance was told, and is gone
                        self._scheduler.cancel(request)
            self._tell_release(None, False)
        self.flush()
        return refused

    def cancel(self, request: InferRequest) -> None:
        """Let the scheduler drop `request` if it still waits."""
        if not self._has_instances:
            self._scheduler.cancel(request)
            return
        with self.lock:
            if not request.answered and request.batch is None:
                self._scheduler.cancel(request)
        self.flush()

    def left(self, request: InferRequest, reschedule: bool) -> None:
        """Take note that `request` left its instance; the lock is held by the caller."""
        if request.batch is not None:
            request.batch.instance.open -= 1
        elif self._has_instances:
            self.waiting -= 1
        if reschedule:
            request.batch = None
            self.waiting += 1
        self._tell_release(request if self._wants_releases or reschedule else None, reschedule)

    def all_left(self, batch: Batch) -> None:
        """Take note that all requests of `batch` left its instance; the lock is held by the caller."""
        if self._wants_releases:
            for request in batch.requests:
                self.left(request, reschedule=False)
        else:
            batch.instance.open -= len(batch.requests)
            self._tell_release(None, False)

    def _tell_release(self, request: InferRequest | None, reschedule: bool) -> None:
        try:
            if request is not None:
                self._scheduler.released(request, reschedule)
            if self._idle and not self._rung and (self._bounded or self._wants_releases):
                self._ring_for_release()
            if self._leaving:
                self._dismiss()
        except Exception as error:  # the answer has to leave all the same, and the caller is in the middle of it
            self._timer.at(now_ns(), partial(self.failed, error))

    def bound(self) -> None:
        """Take note that some instance bounds what it holds: each answer may make room for a batch."""
        self._bounded = True

    def wake(self) -> None:
        """Ask the scheduler again, because something of its own changed, or an instance cannot do what it was rung for."""
        try:
            with self.lock:
                self._ring(now_ns())
                self._dismiss()
        except Exception as error:
            self.failed(error)
        self.flush()

    def leave(self, slot: Slot) -> None:
        """Give `slot`, whose instance the scheduler was told to forget, nothing more that is not bound to it; ring it when it is done with all."""
        with self.lock:
            slot.leaving = True
            self._leaving.append(slot)
            self._dismiss()

    def wind_down(self) -> bool:
        """Let no new sequence begin, where the scheduler knows sequences; say whether some live."""
        with self.lock:
            if type(self._scheduler).is_live is Scheduler.is_live:
                return False
            self._scheduler.stop()
            return self._scheduler.is_live()

    def close(self) -> None:
        """Give no instance anything any more, and let their threads end."""
        with self.lock:
            self._closed = True
            for slot in self._idle:
                slot.idle = False
                slot.close()
            self._idle.clear()

    def _cut(self, slot: Slot, now: int, limit: int) -> Batch | None:
        batch = self._scheduler.take(slot.index, now, limit)
        if batch is None:
            return None
        count = len(batch.requests)
        slot.open += count
        self.waiting -= count
        self._lonely = count == 1
        batch.instance = slot
        batch.start_ns = now
        for request in batch.requests:
            request.batch = batch
        return batch

    def _rest(self, slot: Slot, until_ns: int) -> None:
        slot.until_ns = until_ns
        if not slot.idle:
            slot.idle = True
            self._idle.append(slot)

    def _ring_due(self, slot: Slot, until_ns: int) -> None:
        with self.lock:
            if slot.idle and slot.until_ns == until_ns:
                self.withdraw(slot)
                slot.ring()

    def _ring_for_release(self) -> None:
        if self._rings.in_turn():  # the turn's other answers release more
            self._rung = True
            self._rings.soon(self._ring_idle)
        else:
            self._ring(now_ns())

    def _ring_idle(self) -> None:
        self._rung = False  # before the question: who comes after it rings again
        batch: Batch | None = None
        try:
            with self.lock:
                now = now_ns()
                batch = self._cut_here(now)
                if batch is None:
                    self._ring(now)
                    self._dismiss()
        except Exception as error:
            self.failed(error)
        self.flush()
        if batch is not None:
            batch.instance.run(batch)

    def _cut_here(self, now: int) -> Batch | None:
        """Cut a batch for the only idle instance if it runs in the calling thread: it need not be rung, to ask for what is known already."""
        if len(self._idle) != 1:
            return None
        slot = self._idle[0]
        room = slot.room()
        if room <= 0 or not slot.runs_here() or self._scheduler.ready(slot.index, now) is not True:
            return None
        batch = self._cut(slot, now, room)
        if batch is not None:
            self.withdraw(slot)
        return batch

    def _ring(self, now: int) -> None:
        # Rings at most one instance: when it has taken its batch, it rings the next one. Who has nothing to do comes before who would only keep it ready.
        for slot in self._idle if len(self._idle) == 1 else sorted(self._idle, key=_open):
            if slot.room() <= 0:
                continue
            ready = self._scheduler.ready(slot.index, now)
            if ready is False or (ready is not True and 0 < slot.until_ns <= ready):
                continue
            self._idle.remove(slot)
            slot.idle = False
            slot.ring()
            return

    def _ring_another(self, now: int) -> None:
        """Ring an instance for what is left; if the scheduler fails at that, the batch that was cut is executed all the same."""
        try:
            self._ring(now)
        except Exception as error:
            self.failed(error)

    def _dismiss(self) -> None:
        for slot in tuple(self._leaving):
            slot.dismissed = not self._scheduler.holds(slot.index)
            if slot.dismissed and slot.open == 0:
                slot.gone = True
                self._leaving.remove(slot)
                if slot.idle:
                    self.withdraw(slot)
                    slot.ring()

    def _expire(self, now: int) -> None:
        due = self._scheduler.expire(now)
        if due is not None and (self._armed_ns == 0 or due < self._armed_ns):
            self._armed_ns = due
            self._timer.at(due, self._tick)

    def _tick(self) -> None:
        try:
            with self.lock:
                self._armed_ns = 0
                if not self._closed:
                    now = now_ns()
                    self._expire(now)
                    self._ring(now)  # what expired may have made room for what waits
                    self._dismiss()
        except Exception as error:
            self.failed(error)
        self.flush()


def _open(slot: Slot) -> int:
    return slot.open


def _means_its_enqueue_alike(kind: type[Scheduler]) -> bool:
    """Say whether `enqueue_alike` was written for the `enqueue` that there is, and not for that of a base class."""
    latest = next(each for each in kind.__mro__ if vars(each).keys() & {"enqueue", "enqueue_alike"})
    return "enqueue_alike" in vars(latest)


def _none(_requests: Sequence[InferRequest]) -> bool:
    return False


def _raise(error: Exception) -> None:
    raise error


def _nothing() -> None:
    """Nothing waits to be sent."""
