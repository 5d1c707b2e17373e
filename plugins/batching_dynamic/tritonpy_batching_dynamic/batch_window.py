"""The longest head of a request queue that fits into one batch, updated incrementally."""

from __future__ import annotations

from tritonpy import InferRequest
from tritonpy.scheduling import BatchKey, Pending
from tritonpy_batching_dynamic.request_queue import RequestQueue


class BatchWindow:
    """The longest head of a queue with at most `max_rows` rows, all with the same key.

    `update` examines only new requests, unless the queue changed in another way.
    """

    def __init__(self, max_rows: int, key_of: BatchKey | None) -> None:
        self._max_rows = max_rows
        self._key_of = key_of
        self._key: object = None
        self._requests: list[InferRequest] = []
        self._sizes: list[int] = []
        self._pending = Pending(self._requests, self._sizes, 0, 0)
        self._epoch = 0

    def update(self, queue: RequestQueue) -> Pending:
        """Return the head of `queue`, which is empty only if the queue is."""
        pending = self._pending
        if queue.epoch != self._epoch:
            self._reset(queue.epoch)
        if not pending.closed:
            fresh = queue.after(len(self._sizes), self._max_rows - pending.rows)
            if fresh:
                self._append(fresh)
                if not queue.in_order:
                    pending.oldest_ns = min([request.queued_ns for request in self._requests])
        return pending

    def _reset(self, epoch: int) -> None:
        self._epoch = epoch
        self._requests.clear()
        self._sizes.clear()
        self._pending.rows = 0
        self._pending.closed = False

    def _append(self, fresh: list[InferRequest]) -> None:
        pending = self._pending
        sizes = [request.batch_size or 1 for request in fresh]
        rows = sum(sizes)
        if self._key_of is not None or pending.rows + rows > self._max_rows:
            count = self._count_fitting(fresh, sizes)
            pending.closed = count < len(fresh)
            fresh, sizes = fresh[:count], sizes[:count]
            rows = sum(sizes)
        self._requests += fresh
        self._sizes += sizes
        pending.oldest_ns = self._requests[0].queued_ns
        pending.rows += rows
        if pending.rows >= self._max_rows:
            pending.closed = True

    def _count_fitting(self, fresh: list[InferRequest], sizes: list[int]) -> int:
        room, key_of = self._max_rows - self._pending.rows, self._key_of
        for index, request in enumerate(fresh):
            key = key_of(request) if key_of is not None else None
            room -= sizes[index]
            if not index and not self._sizes:
                self._key = key  # the first request always fits
            elif room < 0 or key != self._key:
                return index
        return len(fresh)
