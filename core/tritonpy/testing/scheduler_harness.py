"""Drives a scheduler through simulated time."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from tritonpy.api.scheduler import UNBOUNDED, Scheduler
from tritonpy.testing.witness import Witness
from tritonpy.types import Batch, InferRequest, InferResponse

START_NS = 1_000_000_000
MANY_STEPS = 10_000


class SchedulerHarness:
    """Plays model and runner for `scheduler`: hands requests over, takes batches, answers and releases them.

    `now_ns` is the simulated clock; it only moves in `step` and `finish`. Whatever the scheduler promises and breaks
    raises AssertionError.
    """

    def __init__(self, scheduler: Scheduler, instances: Sequence[int]) -> None:
        self.scheduler = scheduler
        self.witness = Witness()
        self.now_ns = START_NS
        self.enqueued: list[InferRequest] = []
        self._idle = list(instances)
        self._running: list[tuple[int, Batch]] = []
        scheduler.instances_changed(instances)

    def enqueue(self, request: InferRequest) -> None:
        """Hand `request` over; what `enqueue` raises is passed on."""
        request.owner = self.witness
        request.received_ns = request.queued_ns = self.now_ns
        self.scheduler.enqueue(request)
        self.enqueued.append(request)
        self.scheduler.expire(self.now_ns)

    def enqueue_alike(self, requests: Sequence[InferRequest]) -> bool:
        """Hand `requests` over together; say whether they were taken."""
        for request in requests:
            request.owner = self.witness
            request.received_ns = request.queued_ns = self.now_ns
        taken = self.scheduler.enqueue_alike(requests)
        if taken:
            self.enqueued.extend(requests)
            self.scheduler.expire(self.now_ns)
        return taken

    def cancel(self, request: InferRequest) -> None:
        """Cancel `request` as its client would."""
        request.cancelled = True
        self.scheduler.cancel(request)

    def unanswered(self) -> list[InferRequest]:
        """Return what was enqueued and has no final answer."""
        return [request for request in self.enqueued if not request.answered]

    def step(self, random: Random) -> None:
        """Do one thing that may happen at any time: let time pass, start a batch, or end one."""
        self.now_ns += random.choice([0, 1_000, 1_000_000])
        self.scheduler.expire(self.now_ns)
        if self._running and random.random() < 0.5:
            instance, batch = self._running.pop(random.randrange(len(self._running)))
            self._end(instance, batch)
        elif self._idle:
            instance = self._idle.pop(random.randrange(len(self._idle)))
            batch_or_none = self._take_promised(instance)
            if batch_or_none is None:
                self._idle.append(instance)
            else:
                self._running.append((instance, batch_or_none))

    def finish(self, limit: int = UNBOUNDED) -> list[Batch]:
        """Run until every request is answered, and return the batches; a scheduler without instances is waited for."""
        while self._running:
            self._end(*self._running.pop())
        if not self.scheduler.uses_instances:
            self.witness.wait(*self.enqueued)
            return []
        batches: list[Batch] = []
        for _ in range(MANY_STEPS):
            if not self.unanswered():
                return batches
            batch = self.take_next(limit)
            if batch is not None:
                batches.append(batch)
                self.complete(batch)
        raise AssertionError(f"{len(self.unanswered())} requests still wait after {MANY_STEPS} steps")

    def take_next(self, limit: int = UNBOUNDED) -> Batch | None:
        """Return the next batch that an idle instance is promised, moving the clock to that moment.

        None where the scheduler answered requests itself instead. Raises AssertionError when requests wait and nothing will run them.
        """
        for _ in range(MANY_STEPS):
            wake = self.scheduler.expire(self.now_ns)
            if not self.unanswered():
                return None
            for instance in self._idle:
                batch = self._take_promised(instance, limit)
                if batch is not None:
                    return batch
            self._sleep(wake)
        raise AssertionError("the scheduler names one time after the other and never has a batch")

    def complete(self, batch: Batch) -> None:
        """Answer every request of `batch` and release it."""
        for request in batch.requests:
            request.respond(InferResponse((), request.model_name, 1, request.id))
            self.scheduler.released(request, reschedule=False)

    def _take_promised(self, instance: int, limit: int = UNBOUNDED) -> Batch | None:
        if self.scheduler.ready(instance, self.now_ns) is not True:
            return None
        batch = self.scheduler.take(instance, self.now_ns, limit)
        assert batch is not None, "ready() said yes, take() cut nothing"
        assert batch.requests, "take() cut an empty batch"
        assert len(batch.requests) <= limit, f"take(limit={limit}) cut {len(batch.requests)} requests"
        for request in batch.requests:
            assert not request.answered, "take() cut a request that was answered already"
        return batch

    def _sleep(self, expire_ns: int | None) -> None:
        answers = [self.scheduler.ready(instance, self.now_ns) for instance in self._idle]
        times = [answer for answer in (*answers, expire_ns) if answer is not None and not isinstance(answer, bool)]
        assert times, f"{len(self.unanswered())} requests wait, no batch is ready and no time is named"
        assert min(times) > self.now_ns, "ready() or expire() names a time that has passed"
        self.now_ns = min(times)

    def _end(self, instance: int, batch: Batch) -> None:
        self._idle.append(instance)
        self.complete(batch)
