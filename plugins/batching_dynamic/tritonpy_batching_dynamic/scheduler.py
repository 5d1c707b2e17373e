"""The scheduler that batches: a queue, its head, and a policy's decision about it."""

from __future__ import annotations

import os
from collections.abc import Sequence

from tritonpy import (
    UNBOUNDED,
    Batch,
    BatchPolicy,
    Cancelled,
    InferRequest,
    InferResponse,
    InvalidArgument,
    QueueTimeout,
    Run,
    Scheduler,
    SchedulerContext,
    Unavailable,
    Wait,
    batch_key,
)
from tritonpy_batching_dynamic.queue_policy import QueuePolicy
from tritonpy_batching_dynamic.request_queue import NEVER, RequestQueue
from tritonpy_batching_dynamic.window import Window

HOLD_VARIABLE = "TRITONSERVER_DELAY_SCHEDULER"


class DynamicScheduler(Scheduler):
    """Serves models with `dynamic_batching`. The instances are alike; the model's parameter `batch_policy` names the policy.

    The environment variable TRITONSERVER_DELAY_SCHEDULER, for tests, holds everything back until that many requests have
    been queued at the same time, once.
    """

    def __init__(self, context: SchedulerContext) -> None:
        super().__init__(context)
        config = context.config
        batching = config.dynamic_batching
        name = config.parameters["batch_policy"].string_value if "batch_policy" in config.parameters else "preferred"
        self._policy = context.policy(name)
        self._queue = RequestQueue(
            QueuePolicy.of(batching.default_queue_policy),
            {level: QueuePolicy.of(policy) for level, policy in batching.priority_queue_policy.items()},
            batching.priority_levels,
            batching.default_priority_level,
            context.line,
        )
        self._window = Window(max(1, config.max_batch_size), batch_key(config))
        # An instance asks several times for one batch: a decision is kept while it would come out the same.
        self._decision: Run | Wait = Wait(0)
        self._decision_end_ns = 0
        self._free_ns = 0  # since when an instance is free for what waits
        self._tells_cuts = type(self._policy).cut is not BatchPolicy.cut
        self._hold = _requests_to_hold()
        self._stopped = False

    def enqueue(self, request: InferRequest) -> None:
        """Take the request; raises QueueFull by the policy of its level, Unavailable once stopped."""
        if self._stopped:
            raise Unavailable(
                "Server is stopping, scheduler for model has stopped accepting new inference requests"
            ).with_request_id(request.id)
        self._queue.append(request)
        self._decision_end_ns = 0
        if self._hold and self._queue.size >= self._hold:
            self._hold = 0

    def enqueue_alike(self, requests: Sequence[InferRequest]) -> bool:
        """Take the requests if there is room for all, and none of them has to be watched."""
        if self._stopped or self._hold or not self._queue.extend(requests):
            return False
        self._decision_end_ns = 0
        return True

    def ready(self, instance: int, now_ns: int) -> bool | int:
        """Say whether a batch can be cut now, or when at the latest if nothing comes."""
        decision = self._decide(now_ns)
        if decision is None:
            return False
        return True if type(decision) is Run else decision.until_ns

    def take(self, instance: int, now_ns: int, limit: int = UNBOUNDED) -> Batch | None:
        """Cut the batch that the policy decided on, or its first `limit` requests."""
        decision = self._decide(now_ns)
        if type(decision) is not Run:
            return None
        self._decision_end_ns = self._free_ns = 0
        count = min(decision.count, limit)
        if self._tells_cuts:
            self._policy.cut(self._window.look(self._queue), count, now_ns)
        return Batch(self._queue.pop(count))

    def take_back(self, requests: Sequence[InferRequest]) -> Sequence[InferRequest]:
        """Put `requests` before those that wait at their level, whatever room its policy leaves."""
        for request in reversed(requests):
            self._queue.appendleft(request)
        self._decision_end_ns = 0
        return ()

    def cancel(self, request: InferRequest) -> None:
        """Drop `request` and answer it, if it waits here."""
        if self._queue.remove(request):
            self._decision_end_ns = 0
            if not self._queue.size:
                self._free_ns = 0
            request.respond(InferResponse.failed(request, Cancelled("Request cancelled")))

    def expire(self, now_ns: int) -> int | None:
        """Answer with QueueTimeout what waited too long, put behind its level what may wait on."""
        queue = self._queue
        if queue.next_deadline == NEVER or self._hold:
            return None
        if now_ns >= queue.next_deadline:
            self._decision_end_ns = 0
            for request in queue.expire(now_ns):
                request.respond(InferResponse.failed(request, QueueTimeout("Request timeout expired")))
            if not queue.size:
                self._free_ns = 0
        return queue.next_deadline if queue.next_deadline != NEVER else None

    def instances_changed(self, instances: Sequence[int]) -> None:
        """Tell the policy how many there are."""
        self._policy.instances_changed(len(instances))

    def pending(self) -> Sequence[InferRequest]:
        """The requests that wait, in the order in which they would run."""
        return tuple(self._queue)

    def stop(self) -> None:
        """Accept no more; what waits is still served."""
        self._stopped = True

    def _decide(self, now_ns: int) -> Run | Wait | None:
        queue = self._queue
        if self._hold or not queue.size:
            return None
        if now_ns >= queue.next_deadline:
            self.expire(now_ns)
            if not queue.size:
                return None
        if now_ns >= self._decision_end_ns:
            pending = self._window.look(queue)
            pending.since_ns = self._free_ns = self._free_ns or now_ns
            decision = self._decision = self._policy.plan(pending, now_ns)
            if type(decision) is Wait:
                self._decision_end_ns = decision.until_ns
            else:  # a batch that could be larger may be so at another time
                self._decision_end_ns = NEVER if decision.count == len(pending.sizes) else now_ns + 1
        return self._decision


def _requests_to_hold() -> int:
    text = os.environ.get(HOLD_VARIABLE, "0")
    if not text.isdecimal():
        raise InvalidArgument(f"{HOLD_VARIABLE} must be a number of requests, it is '{text}'")
    return int(text)
