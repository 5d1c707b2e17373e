"""Cancels requests whose deadline passes."""

from __future__ import annotations

import heapq
import itertools
import threading
import weakref
from functools import partial

from tritonpy.clock import now_ns
from tritonpy.runners.timer import Timer
from tritonpy.types import InferRequest

_FEW = 64
_Entry = tuple[int, int, weakref.ref[InferRequest]]


class Deadlines:
    """The deadlines of open requests; any thread may use it.

    Answered requests are neither kept alive nor kept in mind: clients with long deadlines that are answered soon leave nothing behind
    that grows with their number. One timer is armed at a time, unless an earlier deadline comes.
    """

    def __init__(self, timer: Timer) -> None:
        self._timer = timer
        self._lock = threading.Lock()
        self._order = itertools.count()
        self._heap: list[_Entry] = []
        self._most = _FEW  # entries before the answered ones are thrown out
        self._armed_ns = 0

    def __len__(self) -> int:
        return len(self._heap)

    def watch(self, request: InferRequest) -> None:
        """Cancel `request` at its `deadline_ns`, unless it was answered before."""
        with self._lock:
            if len(self._heap) >= self._most:
                self._throw_out()
            heapq.heappush(self._heap, (request.deadline_ns, next(self._order), weakref.ref(request)))
            self._arm()

    def _throw_out(self) -> None:
        self._heap = [entry for entry in self._heap if _is_open(entry[2]())]
        heapq.heapify(self._heap)
        self._most = max(_FEW, 2 * len(self._heap))

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
            if armed_ns != self._armed_ns:  # an earlier deadline has come since, and has seen to the rest
                return due
            now = now_ns()
            while self._heap:
                deadline_ns, _, reference = self._heap[0]
                request = reference()
                if request is not None and not request.answered:
                    if deadline_ns > now:
                        break
                    due.append(request)
                heapq.heappop(self._heap)
            self._armed_ns = 0
            if self._heap:
                self._arm()
        return due


def _is_open(request: InferRequest | None) -> bool:
    return request is not None and not request.answered
