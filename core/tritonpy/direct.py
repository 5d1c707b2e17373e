"""The scheduler that does not batch: each request is one execution."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from tritonpy.api.scheduler import UNBOUNDED, Scheduler, SchedulerContext
from tritonpy.api.sharing import Line
from tritonpy.errors import Cancelled, Unavailable
from tritonpy.types import Batch, InferRequest, InferResponse


class DirectScheduler(Scheduler):
    """Serves a model whose configuration chooses no scheduler: whatever the priority, first in, first out unless callers share the server otherwise."""

    prefetch = True

    def __init__(self, context: SchedulerContext) -> None:
        super().__init__(context)
        self._queue: Line = deque() if context.line is None else context.line()
        self._stopped = False

    def enqueue(self, request: InferRequest) -> None:
        """Take the request; raises Unavailable once stopped."""
        if self._stopped:
            raise Unavailable(
                "Server is stopping, scheduler for model has stopped accepting new inference requests"
            ).with_request_id(request.id)
        self._queue.append(request)

    def ready(self, instance: int, now_ns: int) -> bool:
        """Say yes while a request waits; the instances are alike."""
        return bool(self._queue)

    def take(self, instance: int, now_ns: int, limit: int = UNBOUNDED) -> Batch | None:
        """Cut the oldest request, whatever its own batch size."""
        return Batch([self._queue.popleft()]) if self._queue else None

    def take_back(self, requests: Sequence[InferRequest]) -> Sequence[InferRequest]:
        """Put `requests` before those that wait."""
        for request in reversed(requests):
            self._queue.appendleft(request)
        return ()

    def cancel(self, request: InferRequest) -> None:
        """Drop `request` and answer it, if it waits here."""
        try:
            self._queue.remove(request)
        except ValueError:
            return
        request.respond(InferResponse.failed(request, Cancelled("Request cancelled")))

    def pending(self) -> Sequence[InferRequest]:
        """The requests that wait, oldest first."""
        return tuple(self._queue)

    def stop(self) -> None:
        """Accept no more; what waits is still served."""
        self._stopped = True
