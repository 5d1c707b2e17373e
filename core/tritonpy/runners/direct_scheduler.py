"""The scheduler without batching: each request is one execution."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from tritonpy.api.scheduler import UNBOUNDED, Scheduler, SchedulerContext
from tritonpy.api.sharing import WaitingQueue
from tritonpy_types import Batch, InferRequest, InferResponse
from tritonpy_types.errors import Cancelled, Unavailable


class DirectScheduler(Scheduler):
    """Serves models whose configuration selects no scheduler.

    Requests run first in, first out, regardless of priority, unless a sharing plugin orders them.
    """

    prefetch = True

    def __init__(self, context: SchedulerContext) -> None:
        super().__init__(context)
        self._queue: WaitingQueue = deque() if context.new_queue is None else context.new_queue()
        self._stopped = False

    def enqueue(self, request: InferRequest) -> None:
        """Add the request to the queue; raises Unavailable once stopped."""
        if self._stopped:
            raise Unavailable(
                "Server is stopping, scheduler for model has stopped accepting new inference "
                "requests"
            ).with_request_id(request.id)
        self._queue.append(request)

    def ready(self, instance: int, now_ns: int) -> bool:
        """Return whether a request waits; all instances are equal."""
        return bool(self._queue)

    def take(self, instance: int, now_ns: int, limit: int = UNBOUNDED) -> Batch | None:
        """Return a batch of the oldest request, regardless of its batch size."""
        return Batch([self._queue.popleft()]) if self._queue else None

    def requeue(self, requests: Sequence[InferRequest]) -> Sequence[InferRequest]:
        """Put `requests` in front of those that wait."""
        for request in reversed(requests):
            self._queue.appendleft(request)
        return ()

    def cancel(self, request: InferRequest) -> None:
        """If `request` waits here, drop it and respond with Cancelled."""
        try:
            self._queue.remove(request)
        except ValueError:
            return
        request.respond(InferResponse.failed(request, Cancelled("Request cancelled")))

    def pending(self) -> Sequence[InferRequest]:
        """The waiting requests, oldest first."""
        return tuple(self._queue)

    def stop(self) -> None:
        """Accept no more requests; those that wait are still served."""
        self._stopped = True
