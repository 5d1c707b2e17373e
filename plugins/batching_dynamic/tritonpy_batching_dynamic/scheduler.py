"""The dynamic batching scheduler: a request queue, its batch window, and a batch policy."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from tritonpy import (
    Batch,
    Cancelled,
    InferRequest,
    InferResponse,
    InvalidArgument,
    QueueTimeout,
    Unavailable,
)
from tritonpy.scheduling import (
    UNBOUNDED,
    BatchPolicy,
    Run,
    Scheduler,
    SchedulerContext,
    Wait,
    batch_key,
)
from tritonpy_batching_dynamic.batch_window import BatchWindow
from tritonpy_batching_dynamic.queue_policy import QueuePolicy
from tritonpy_batching_dynamic.request_queue import NEVER, RequestQueue

HOLD_VARIABLE = "TRITONSERVER_DELAY_SCHEDULER"
BATCH_LIBRARY = "TRITON_BATCH_STRATEGY_PATH"


class DynamicScheduler(Scheduler):
    """Serves models with `dynamic_batching`. The parameter `batch_policy` names the policy.

    A model with a batching library of Triton's C interface uses the policy `c`. All instances share
    one queue. For tests, the environment variable TRITONSERVER_DELAY_SCHEDULER delays the first
    batch until that many requests are queued.
    """

    def __init__(self, context: SchedulerContext) -> None:
        super().__init__(context)
        config = context.config
        batching = config.dynamic_batching
        name = "c" if BATCH_LIBRARY in config.parameters else "preferred"
        if "batch_policy" in config.parameters:
            name = config.parameters["batch_policy"].string_value
        self._policy = context.policy(name)
        self._queue = RequestQueue(
            QueuePolicy.of(batching.default_queue_policy),
            {
                level: QueuePolicy.of(policy)
                for level, policy in batching.priority_queue_policy.items()
            },
            batching.priority_levels,
            batching.default_priority_level,
            context.new_queue,
        )
        self._window = BatchWindow(max(1, config.max_batch_size), batch_key(config))
        # Cached, because an instance calls several times per batch.
        self._decision: Run | Wait = Wait(0)
        self._decision_end_ns = 0
        self._free_ns = 0  # when an instance became free for the pending requests, 0 if unknown
        self._reports_cuts = type(self._policy).cut is not BatchPolicy.cut
        self._hold_until_size = _requests_to_hold()
        self._stopped = False

    def enqueue(self, request: InferRequest) -> None:
        """Queue the request.

        Raises `QueueFull` if its level is full, `Unavailable` after `stop`.
        """
        if self._stopped:
            raise Unavailable(
                "Server is stopping, scheduler for model has stopped accepting new inference "
                "requests"
            ).with_request_id(request.id)
        self._queue.append(request)
        self._decision_end_ns = 0
        if self._hold_until_size and self._queue.size >= self._hold_until_size:
            self._hold_until_size = 0

    def enqueue_many(self, requests: Sequence[InferRequest]) -> bool:
        """Queue all requests at once.

        Return False and queue none if one needs separate handling.
        """
        if self._stopped or self._hold_until_size or not self._queue.extend(requests):
            return False
        self._decision_end_ns = 0
        return True

    # Returns `bool | int`. With that type, compiled code would turn True into 1.
    def ready(self, instance: int, now_ns: int) -> Any:
        """Return whether a batch can run now, or the latest time (ns) at which one can."""
        decision = self._decide(now_ns)
        if decision is None:
            return False
        if type(decision) is Run:
            return True
        return decision.until_ns

    def take(self, instance: int, now_ns: int, limit: int = UNBOUNDED) -> Batch | None:
        """Return the batch that the policy selected, or its first `limit` requests."""
        decision = self._decide(now_ns)
        if type(decision) is not Run:
            return None
        self._decision_end_ns = self._free_ns = 0
        count = min(decision.count, limit)
        if self._reports_cuts:
            self._policy.cut(self._window.update(self._queue), count, now_ns)
        return Batch(self._queue.pop(count))

    def requeue(self, requests: Sequence[InferRequest]) -> Sequence[InferRequest]:
        """Put `requests` back at the front of their levels, regardless of size limits."""
        for request in reversed(requests):
            self._queue.appendleft(request)
        self._decision_end_ns = 0
        return ()

    def cancel(self, request: InferRequest) -> None:
        """Remove `request` and send its error, if it is waiting."""
        if self._queue.remove(request):
            self._decision_end_ns = 0
            if not self._queue.size:
                self._free_ns = 0
            request.respond(InferResponse.failed(request, Cancelled("Request cancelled")))

    def expire(self, now_ns: int) -> int | None:
        """Reject requests that timed out, or move them behind their level.

        Return the next deadline.
        """
        queue = self._queue
        if queue.next_deadline == NEVER or self._hold_until_size:
            return None
        if now_ns >= queue.next_deadline:
            self._decision_end_ns = 0
            for request in queue.expire(now_ns):
                request.respond(
                    InferResponse.failed(request, QueueTimeout("Request timeout expired"))
                )
            if not queue.size:
                self._free_ns = 0
        return queue.next_deadline if queue.next_deadline != NEVER else None

    def instances_changed(self, instances: Sequence[int]) -> None:
        """Update the policy's number of instances."""
        self._policy.instances_changed(len(instances))

    def pending(self) -> Sequence[InferRequest]:
        """Return the waiting requests in execution order."""
        return tuple(self._queue)

    def stop(self) -> None:
        """Accept no more requests. Waiting requests are still served."""
        self._stopped = True

    def _decide(self, now_ns: int) -> Run | Wait | None:
        queue = self._queue
        if self._hold_until_size or not queue.size:
            return None
        if now_ns >= queue.next_deadline:
            self.expire(now_ns)
            if not queue.size:
                return None
        if now_ns >= self._decision_end_ns:
            pending = self._window.update(queue)
            pending.since_ns = self._free_ns = self._free_ns or now_ns
            decision = self._decision = self._policy.plan(pending, now_ns)
            if type(decision) is Wait:
                self._decision_end_ns = decision.until_ns
            else:  # a partial batch may grow later
                self._decision_end_ns = (
                    NEVER if decision.count == len(pending.sizes) else now_ns + 1
                )
        return self._decision


def _requests_to_hold() -> int:
    text = os.environ.get(HOLD_VARIABLE, "0")
    if not text.isdecimal():
        raise InvalidArgument(f"{HOLD_VARIABLE} must be a number of requests, it is '{text}'")
    return int(text)
