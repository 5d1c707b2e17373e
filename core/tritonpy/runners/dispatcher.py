"""The dispatcher, which assigns requests to the instances of one model."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from enum import Enum, auto
from functools import partial
from typing import Any

from tritonpy.api.scheduler import Scheduler
from tritonpy.runners.slot import PooledSlot, Slot
from tritonpy.runners.timer import Timer
from tritonpy.runners.wakeups import Wakeups
from tritonpy_types import Batch, InferRequest
from tritonpy_types.clock import now_ns

# Sends the responses that were deferred under the model's lock: a sink is never called under it.
Flush = Callable[[], None]


class Step(Enum):
    """The next step of a thread for a pooled instance; END: the model or the instance is closed."""

    EXECUTE = auto()
    IDLE = auto()
    END = auto()


class Dispatcher:
    """Wraps a scheduler; a scheduler with instances is called under `lock`.

    The lock is re-entrant because a scheduler may fail a request that it drops from inside any of
    its methods.
    """

    def __init__(self, timer: Timer, wakeups: Wakeups | None = None) -> None:
        self.lock = threading.RLock()
        self.waiting = 0  # requests enqueued but not taken
        self.flush: Flush = _no_op
        self.failed: Callable[[Exception], None] = _raise
        # Passes a request to a scheduler with instances, but wakes none: call `announce` after the
        # last request. The caller holds the lock.
        self.offer: Callable[[InferRequest], None]
        # The same for coalesced requests: all or none of them.
        self.offer_many: Callable[[Sequence[InferRequest]], bool]
        self._timer = timer
        self._wakeups = wakeups or Wakeups()
        self._wake_pending = False  # a wake-up is due at the end of the event-loop iteration
        self._last_was_single = True  # whether the last batch was a single request
        self._idle: list[Slot] = []
        self._draining: list[Slot] = []
        self._closed = False
        self._bounded = False
        self._armed_ns = 0
        self._scheduler: Scheduler
        # `Any` instead of `bool | int`: compiled code would turn True into 1.
        self._ready: Callable[[int, int], Any]

    def attach(self, scheduler: Scheduler) -> None:
        """Set the scheduler; called once, before the first request."""
        self._scheduler = scheduler
        self._ready = scheduler.ready
        self.offer = scheduler.enqueue
        self.offer_many = (
            scheduler.enqueue_many if _overrides_enqueue_many(type(scheduler)) else _decline
        )
        # Determined once: most schedulers have no timeouts and ignore releases.
        self._expires = type(scheduler).expire is not Scheduler.expire
        self._tracks_releases = type(scheduler).released is not Scheduler.released
        self._has_instances = scheduler.uses_instances

    def enqueue(self, request: InferRequest) -> None:
        """Pass `request` to the scheduler and wake an idle instance.

        The caller holds the lock, except for a scheduler without instances, which calls other
        models.
        """
        self._scheduler.enqueue(request)
        if self._has_instances:
            self.announce(1, request.queued_ns)

    def announce(self, count: int, now_ns: int) -> None:
        """Record that the scheduler has `count` more requests, and wake an idle instance.

        The caller has held the lock since it passed the requests to the scheduler.
        """
        self.waiting += count
        try:
            if self._expires:
                self._expire(now_ns)
            if self._idle and not self._wake_pending:
                if self._last_was_single and self.waiting == 1:
                    self._wake_one(now_ns)  # requests come one at a time: do not wait for others
                else:
                    self._wake_pending = True
                    self._wakeups.soon(self._wake_idle)
        except Exception as error:
            # The scheduler owns the requests: the caller must not fail them, too.
            self.failed(error)

    def wait_ready(self, slot: Slot) -> bool:
        """Block until the scheduler has a batch for `slot`; return False if `slot` gets no more."""
        while True:
            if slot.assigned is not None:
                return True
            with self.lock:
                if self._closed or slot.drained:
                    return False
                ready = self._ready(slot.index, now_ns()) if slot.capacity() > 0 else False
                if ready is True:
                    return True
                slot.until_ns = 0 if ready is False else ready
                slot.idle = True
                self._idle.append(slot)
            self.flush()
            self.wait_wakeup(slot)

    def next_step(self, slot: PooledSlot) -> Step:
        """Return the next step of the calling thread, which a pool lent to `slot`.

        After IDLE, the thread must not use `slot` any more. If the scheduler named a time, the
        thread itself waits for it, so that no other thread has to wake up first.
        """
        while True:
            if slot.assigned is not None:
                return Step.EXECUTE
            with self.lock:
                if self._closed or slot.drained:
                    return Step.END
                ready = self._ready(slot.index, now_ns()) if slot.capacity() > 0 else False
                if ready is True:
                    return Step.EXECUTE
                slot.until_ns = until_ns = 0 if ready is False else ready
                slot.parked = until_ns > 0
                slot.idle = True
                self._idle.append(slot)
            try:
                self.flush()
            except Exception as error:  # another thread may own the instance by now
                self.failed(error)
            if until_ns == 0 or not self._wait_woken(slot, until_ns):
                return Step.IDLE

    def _wait_woken(self, slot: PooledSlot, until_ns: int) -> bool:
        """Block until `slot` is woken or `until_ns`; return False if another thread owns it."""
        if slot.wakeup.acquire(timeout=max(until_ns - now_ns(), 0) / 1e9):
            return True
        with self.lock:
            if slot.idle:
                slot.idle = slot.parked = False
                self._idle.remove(slot)
                return True
            if slot.parked:  # woken, but its owner has not woken this thread
                slot.parked = False
                return False
        slot.wakeup.acquire()  # woken between the timeout and the lock
        return True

    def resume_on_thread(self, slot: PooledSlot) -> None:
        """Let a thread continue with `slot`, which the caller owns."""
        with self.lock:
            slot.wake_thread()

    def has_batch_for(self, slot: Slot) -> bool:
        """Return whether the scheduler has a batch for `slot` now."""
        with self.lock:
            return (
                not self._closed
                and slot.capacity() > 0
                and self._ready(slot.index, now_ns()) is True
            )

    def wait_wakeup(self, slot: Slot) -> None:
        """Block the thread of the idle `slot` until it is woken or has to check again."""
        if slot.until_ns == 0:
            slot.wakeup.acquire()
            return
        wait_ns = slot.until_ns - now_ns()
        if slot.wakeup.acquire(timeout=max(wait_ns, 0) / 1e9):
            return
        with self.lock:
            if slot.idle:
                slot.idle = False
                self._idle.remove(slot)
                return
        # Woken between the timeout and the lock: consume the wake-up, so that a later wait blocks.
        slot.wakeup.acquire()

    def take(self, slot: Slot, limit: int) -> Batch | None:
        """Return a batch of at most `limit` requests for `slot`, or None if there is none."""
        with self.lock:
            now = now_ns()
            limit = min(limit, slot.capacity())
            ready = limit > 0 and self._ready(slot.index, now) is True
            batch = self._take_batch(slot, now, limit) if ready else None
            if self._idle:
                self._wake_another(now)
        self.flush()
        return batch

    def take_or_idle(self, slot: Slot) -> Batch | None:
        """Return a batch for `slot`, or None and mark it idle, so that it will be woken."""
        with self.lock:
            if self._closed:
                return None
            now = now_ns()
            capacity = slot.capacity()
            ready = self._ready(slot.index, now) if capacity > 0 else False
            batch = self._take_batch(slot, now, capacity) if ready is True else None
            if batch is not None:
                self.unmark_idle(slot)
                if self._idle:
                    self._wake_another(now)
            else:
                self._mark_idle(slot, 0 if ready is True or ready is False else ready)
                if slot.until_ns:
                    wake = partial(self._wake_due, slot, slot.until_ns)
                    if not self._wakeups.at(slot.until_ns, wake):
                        self._timer.at(slot.until_ns, wake)
        self.flush()
        return batch

    def mark_idle(self, slot: Slot) -> bool:
        """Mark `slot` idle without querying the scheduler; return False if the model is closed."""
        with self.lock:
            if not self._closed:
                self._mark_idle(slot, 0)
            return not self._closed

    def mark_idle_if_no_requests(self, slot: Slot) -> bool:
        """Mark `slot` idle and return True, unless a request waits or the model is closed."""
        if self.waiting:  # without the lock: at most, the caller looks for a batch once more
            return False
        with self.lock:
            if self.waiting or self._closed or slot.draining:
                return False
            self._mark_idle(slot, 0)
            return True

    def unmark_idle(self, slot: Slot) -> None:
        """Do not wake `slot` until it asks for a batch again."""
        with self.lock:
            if slot.idle:
                slot.idle = False
                self._idle.remove(slot)

    def lost(self, slot: Slot) -> None:
        """Record that the memory of an instance is lost."""
        with self.lock:
            self._scheduler.lost(slot.index)
        self.flush()

    def restored(self, slot: Slot) -> None:
        """Record that an instance whose memory was lost serves again."""
        with self.lock:
            self._scheduler.restored(slot.index)
        self.flush()

    def requeue(self, requests: Sequence[InferRequest]) -> list[InferRequest]:
        """Requeue requests, oldest first, whose instance ended before it executed them.

        Returns those that cannot be requeued.
        """
        with self.lock:
            refused = list(self._scheduler.requeue(requests))
            for request in requests:
                if request not in refused and request.batch is not None:
                    request.batch.instance.open -= 1
                    request.batch = None
                    self.waiting += 1
                    if request.cancelled:  # the instance that was notified is gone
                        self._scheduler.cancel(request)
            self._notify_release(None, False)
        self.flush()
        return refused

    def cancel(self, request: InferRequest) -> None:
        """Let the scheduler drop `request` if it still waits."""
        if not self._has_instances:
            self._scheduler.cancel(request)
            return
        with self.lock:
            if not request.finished and request.batch is None:
                self._scheduler.cancel(request)
        self.flush()

    def release(self, request: InferRequest, reschedule: bool) -> None:
        """Record that `request` left its instance; the caller holds the lock."""
        if request.batch is not None:
            request.batch.instance.open -= 1
        elif self._has_instances:
            self.waiting -= 1
        if reschedule:
            request.batch = None
            self.waiting += 1
        self._notify_release(request if self._tracks_releases or reschedule else None, reschedule)

    def release_all(self, batch: Batch) -> None:
        """Record that all requests of `batch` left their instance; the caller holds the lock."""
        if self._tracks_releases:
            for request in batch.requests:
                self.release(request, reschedule=False)
        else:
            batch.instance.open -= len(batch.requests)
            self._notify_release(None, False)

    def _notify_release(self, request: InferRequest | None, reschedule: bool) -> None:
        try:
            if request is not None:
                self._scheduler.released(request, reschedule)
            if self._idle and not self._wake_pending and (self._bounded or self._tracks_releases):
                self._wake_for_release()
            if self._draining:
                self._finish_draining()
        except Exception as error:
            # The response must still be sent, and the caller cannot handle the error.
            self._timer.at(now_ns(), partial(self.failed, error))

    def mark_bounded(self) -> None:
        """Record that an instance limits its requests: each response may allow a new batch."""
        self._bounded = True

    def wake(self) -> None:
        """Query the scheduler again after it changed or an instance could not use its wake-up."""
        try:
            with self.lock:
                self._wake_one(now_ns())
                self._finish_draining()
        except Exception as error:
            self.failed(error)
        self.flush()

    def drain(self, slot: Slot) -> None:
        """Assign `slot` only what is bound to it, and wake it when all of that is done.

        The scheduler has already removed the instance.
        """
        with self.lock:
            slot.draining = True
            self._draining.append(slot)
            self._finish_draining()

    def stop_sequences(self) -> bool:
        """Do not let new sequences begin; return whether any are live."""
        with self.lock:
            if type(self._scheduler).is_live is Scheduler.is_live:
                return False
            self._scheduler.stop()
            return self._scheduler.is_live()

    def close(self) -> None:
        """Assign no more work and let the threads of the instances end."""
        with self.lock:
            self._closed = True
            for slot in self._idle:
                slot.idle = False
                slot.close()
            self._idle.clear()

    def _take_batch(self, slot: Slot, now: int, limit: int) -> Batch | None:
        batch = self._scheduler.take(slot.index, now, limit)
        if batch is None:
            return None
        count = len(batch.requests)
        slot.open += count
        self.waiting -= count
        self._last_was_single = count == 1
        batch.instance = slot
        batch.start_ns = now
        for request in batch.requests:
            request.batch = batch
        return batch

    def _mark_idle(self, slot: Slot, until_ns: int) -> None:
        slot.until_ns = until_ns
        if not slot.idle:
            slot.idle = True
            self._idle.append(slot)

    def _wake_due(self, slot: Slot, until_ns: int) -> None:
        with self.lock:
            if slot.idle and slot.until_ns == until_ns:
                self.unmark_idle(slot)
                slot.wake()

    def _wake_for_release(self) -> None:
        if self._wakeups.is_on_loop():  # other responses of this event-loop iteration release more
            self._wake_pending = True
            self._wakeups.soon(self._wake_idle)
        else:
            self._wake_one(now_ns())

    def _wake_idle(self) -> None:
        self._wake_pending = False  # before the query, so that a later request wakes again
        batch: Batch | None = None
        try:
            with self.lock:
                now = now_ns()
                batch = self._cut_inline(now)
                if batch is None:
                    self._wake_one(now)
                    self._finish_draining()
        except Exception as error:
            self.failed(error)
        self.flush()
        if batch is not None:
            batch.instance.run(batch)

    def _cut_inline(self, now: int) -> Batch | None:
        """Return a batch for the only idle instance if it can run in the calling thread.

        Such an instance need not be woken.
        """
        if len(self._idle) != 1:
            return None
        slot = self._idle[0]
        capacity = slot.capacity()
        if capacity <= 0 or not slot.can_run_inline() or self._ready(slot.index, now) is not True:
            return None
        batch = self._take_batch(slot, now, capacity)
        if batch is not None:
            self.unmark_idle(slot)
        return batch

    def _wake_one(self, now: int) -> None:
        # Wake at most one instance: once it has taken its batch, it wakes the next one. Instances
        # with fewer requests come first.
        for slot in self._idle if len(self._idle) == 1 else sorted(self._idle, key=_count_open):
            if slot.capacity() <= 0:
                continue
            ready = self._ready(slot.index, now)
            if ready is False or (ready is not True and 0 < slot.until_ns <= ready):
                continue
            self._idle.remove(slot)
            slot.idle = False
            slot.wake()
            return

    def _wake_another(self, now: int) -> None:
        """Wake an instance for the remaining requests.

        If the scheduler fails here, the batch already taken is still executed.
        """
        try:
            self._wake_one(now)
        except Exception as error:
            self.failed(error)

    def _finish_draining(self) -> None:
        for slot in tuple(self._draining):
            slot.no_more_work = not self._scheduler.holds(slot.index)
            if slot.no_more_work and slot.open == 0:
                slot.drained = True
                self._draining.remove(slot)
                if slot.idle:
                    self.unmark_idle(slot)
                    slot.wake()

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
                    self._wake_one(now)  # expired requests may allow others to proceed
                    self._finish_draining()
        except Exception as error:
            self.failed(error)
        self.flush()


def _count_open(slot: Slot) -> int:
    return slot.open


def _overrides_enqueue_many(kind: type[Scheduler]) -> bool:
    """Return whether `enqueue_many` is defined at least as low in the MRO as `enqueue`."""
    latest = next(each for each in kind.__mro__ if vars(each).keys() & {"enqueue", "enqueue_many"})
    return "enqueue_many" in vars(latest)


def _decline(_requests: Sequence[InferRequest]) -> bool:
    return False


def _raise(error: Exception) -> None:
    raise error


def _no_op() -> None:
    """Do nothing: no response is deferred."""
