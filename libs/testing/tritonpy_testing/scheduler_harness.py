"""A harness that runs a scheduler in simulated time."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from tritonpy import Batch, InferRequest, InferResponse
from tritonpy.scheduling import UNBOUNDED, Scheduler
from tritonpy_testing.recording_sink import RecordingSink

START_NS = 1_000_000_000
MANY_STEPS = 10_000


class SchedulerHarness:
    """The model and runner of `scheduler`: it enqueues requests, takes batches and responds.

    `now_ns` is the simulated clock, which advances only in `step` and `finish`. Raises
    AssertionError when the scheduler breaks its contract.
    """

    def __init__(self, scheduler: Scheduler, instances: Sequence[int]) -> None:
        self.scheduler = scheduler
        self.recorder = RecordingSink()
        self.now_ns = START_NS
        self.enqueued: list[InferRequest] = []
        self._idle = list(instances)
        self._running: list[tuple[int, Batch]] = []
        scheduler.instances_changed(instances)

    def enqueue(self, request: InferRequest) -> None:
        """Enqueue `request`. Raises the exceptions of `Scheduler.enqueue`."""
        request.owner = self.recorder
        request.received_ns = request.queued_ns = self.now_ns
        self.scheduler.enqueue(request)
        self.enqueued.append(request)
        self.scheduler.expire(self.now_ns)

    def enqueue_many(self, requests: Sequence[InferRequest]) -> bool:
        """Enqueue `requests` together and return whether they were accepted."""
        for request in requests:
            request.owner = self.recorder
            request.received_ns = request.queued_ns = self.now_ns
        taken = self.scheduler.enqueue_many(requests)
        if taken:
            self.enqueued.extend(requests)
            self.scheduler.expire(self.now_ns)
        return taken

    def cancel(self, request: InferRequest) -> None:
        """Cancel `request` as its client would."""
        request.cancelled = True
        self.scheduler.cancel(request)

    def unanswered(self) -> list[InferRequest]:
        """Return the enqueued requests without a final response."""
        return [request for request in self.enqueued if not request.finished]

    def step(self, random: Random) -> None:
        """Perform one random event: advance the clock, start a batch, or end one."""
        self.now_ns += random.choice([0, 1_000, 1_000_000])
        self.scheduler.expire(self.now_ns)
        if self._running and random.random() < 0.5:
            instance, batch = self._running.pop(random.randrange(len(self._running)))
            self._end(instance, batch)
        elif self._idle:
            instance = self._idle.pop(random.randrange(len(self._idle)))
            batch_or_none = self._take_ready(instance)
            if batch_or_none is None:
                self._idle.append(instance)
            else:
                self._running.append((instance, batch_or_none))

    def finish(self, limit: int = UNBOUNDED) -> list[Batch]:
        """Run until every request has a final response, and return the batches.

        For a scheduler without instances, wait for the responses instead.
        """
        while self._running:
            self._end(*self._running.pop())
        if not self.scheduler.uses_instances:
            self.recorder.wait(*self.enqueued)
            return []
        batches: list[Batch] = []
        for _ in range(MANY_STEPS):
            if not self.unanswered():
                return batches
            batch = self.take_next(limit)
            if batch is not None:
                batches.append(batch)
                self.complete(batch)
        raise AssertionError(
            f"{len(self.unanswered())} requests still wait after {MANY_STEPS} steps"
        )

    def take_next(self, limit: int = UNBOUNDED) -> Batch | None:
        """Return the next batch for an idle instance, advancing the clock to its time.

        Returns None if the scheduler responded to the requests itself. Raises AssertionError if
        requests wait and the scheduler would never run them.
        """
        for _ in range(MANY_STEPS):
            wake = self.scheduler.expire(self.now_ns)
            if not self.unanswered():
                return None
            for instance in self._idle:
                batch = self._take_ready(instance, limit)
                if batch is not None:
                    return batch
            self._advance_clock(wake)
        raise AssertionError("the scheduler returns a new time at each call and never has a batch")

    def complete(self, batch: Batch) -> None:
        """Send a final response for every request of `batch` and release it."""
        for request in batch.requests:
            request.respond(InferResponse((), request.model_name, 1, request.id))
            self.scheduler.released(request, reschedule=False)

    def _take_ready(self, instance: int, limit: int = UNBOUNDED) -> Batch | None:
        if self.scheduler.ready(instance, self.now_ns) is not True:
            return None
        batch = self.scheduler.take(instance, self.now_ns, limit)
        assert batch is not None, "ready() returned True, take() returned no batch"
        assert batch.requests, "take() returned an empty batch"
        assert len(batch.requests) <= limit, (
            f"take(limit={limit}) returned {len(batch.requests)} requests"
        )
        for request in batch.requests:
            assert not request.finished, (
                "take() returned a request that already has its final response"
            )
        return batch

    def _advance_clock(self, expire_ns: int | None) -> None:
        results = [self.scheduler.ready(instance, self.now_ns) for instance in self._idle]
        times = [
            time
            for time in (*results, expire_ns)
            if time is not None and not isinstance(time, bool)
        ]
        assert times, (
            f"{len(self.unanswered())} requests wait, but no batch is ready and no time is returned"
        )
        assert min(times) > self.now_ns, "ready() or expire() returned a time in the past"
        self.now_ns = min(times)

    def _end(self, instance: int, batch: Batch) -> None:
        self._idle.append(instance)
        self.complete(batch)
