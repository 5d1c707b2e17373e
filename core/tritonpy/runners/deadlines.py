"""Cancellation of requests at their deadlines."""

from __future__ import annotations

import heapq
import itertools
import threading
import weakref
from functools import partial

from tritonpy.runners.timer import Timer
from tritonpy_types import InferRequest
from tritonpy_types.clock import now_ns

_MIN_ENTRIES = 64
_Entry = tuple[int, int, weakref.ref[InferRequest]]


class Deadlines:
    """The deadlines of requests in flight; any thread may use it.

    Finished requests are not kept alive, and their entries are removed regularly. Clients with long
    deadlines and fast responses therefore cost no lasting memory. One timer is armed at a time,
    unless an earlier deadline comes.
    """

    def __init__(self, timer: Timer) -> None:
        self._timer = timer
        self._lock = threading.Lock()
        self._order = itertools.count()
        self._heap: list[_Entry] = []
        self._max_entries = (
            _MIN_ENTRIES  # number of entries at which those of finished requests are removed
        )
        self._armed_ns = 0

    def __len__(self) -> int:
        return len(self._heap)

    def watch(self, request: InferRequest) -> None:
        """Cancel `request` at its `deadline_ns` unless it finishes before."""
        with self._lock:
            if len(self._heap) >= self._max_entries:
                self._remove_finished()
            heapq.heappush(
                self._heap, (request.deadline_ns, next(self._order), weakref.ref(request))
            )
            self._arm()

    def _remove_finished(self) -> None:
        self._heap = [entry for entry in self._heap if _is_open(entry[2]())]
        heapq.heapify(self._heap)
        self._max_entries = max(_MIN_ENTRIES, 2 * len(self._heap))

    def _arm(self) -> None:
        earliest = self._heap[0][0]
        if not self._armed_ns or earliest < self._armed_ns:
            self._armed_ns = earliest
            self._timer.at(earliest, partial(self._due, earliest))

    def _due(self, armed_ns: int) -> None:
        for request in self._take_due(armed_ns):
            request.cancel()

    def _take_due(self, armed_ns: int) -> list[InferRequest]:
        due: list[InferRequest] = []
        with self._lock:
            if armed_ns != self._armed_ns:  # a timer for an earlier deadline has handled the others
                return due
            now = now_ns()
            while self._heap:
                deadline_ns, _, reference = self._heap[0]
                request = reference()
                if request is not None and not request.finished:
                    if deadline_ns > now:
                        break
                    due.append(request)
                heapq.heappop(self._heap)
            self._armed_ns = 0
            if self._heap:
                self._arm()
        return due


def _is_open(request: InferRequest | None) -> bool:
    return request is not None and not request.finished
