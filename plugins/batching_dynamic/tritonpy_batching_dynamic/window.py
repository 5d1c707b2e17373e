"""The head of a queue that may become one batch, kept up to date as cheaply as the queue changes."""

from __future__ import annotations

from tritonpy import BatchKey, InferRequest, Pending
from tritonpy_batching_dynamic.request_queue import RequestQueue


class Window:
    """Follows a queue: at most `max_rows` rows, all with the same key.

    Only what was added since the last look is examined, unless the queue changed otherwise.
    """

    def __init__(self, max_rows: int, key_of: BatchKey | None) -> None:
        self._max_rows = max_rows
        self._key_of = key_of
        self._key: object = None
        self._requests: list[InferRequest] = []
        self._sizes: list[int] = []
        self._pending = Pending(self._requests, self._sizes, 0, 0)
        self._epoch = 0

    def look(self, queue: RequestQueue) -> Pending:
        """Return the head of `queue`; it has at least one request if the queue has."""
        pending = self._pending
        if queue.epoch != self._epoch:
            self._reset(queue.epoch)
        if not pending.closed:
            fresh = queue.after(len(self._sizes), self._max_rows - pending.rows)
            if fresh:
                self._admit(fresh)
                if not queue.in_order:
                    pending.oldest_ns = min([request.queued_ns for request in self._requests])
        return pending

    def _reset(self, epoch: int) -> None:
        self._epoch = epoch
        self._requests.clear()
        self._sizes.clear()
        self._pending.rows = 0
        self._pending.closed = False

    def _admit(self, fresh: list[InferRequest]) -> None:
        pending = self._pending
        sizes = [request.batch_size or 1 for request in fresh]
        rows = sum(sizes)
        if self._key_of is not None or pending.rows + rows > self._max_rows:
            count = self._fitting(fresh, sizes)
            pending.closed = count < len(fresh)
            fresh, sizes = fresh[:count], sizes[:count]
            rows = sum(sizes)
        self._requests += fresh
        self._sizes += sizes
        pending.oldest_ns = self._requests[0].queued_ns
        pending.rows += rows
        if pending.rows >= self._max_rows:
            pending.closed = True

    def _fitting(self, fresh: list[InferRequest], sizes: list[int]) -> int:
        room, key_of = self._max_rows - self._pending.rows, self._key_of
        for index, request in enumerate(fresh):
            key = key_of(request) if key_of is not None else None
            room -= sizes[index]
            if not index and not self._sizes:
                self._key = key  # the first request of a batch fits by definition
            elif room < 0 or key != self._key:
                return index
        return len(fresh)
