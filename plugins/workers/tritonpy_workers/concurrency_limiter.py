"""Limit of the concurrent executions of one model's workers."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Hashable

from tritonpy import now_ns

_SHORT_NS = 250_000
"""Mean execution time below which other instances wait. Such an execution takes no longer

than its transport to the worker and back.
"""
_MAX_WAIT_NS = 1_500_000
"""Maximum wait of an instance: a few executions with their transport, on processors that

other processes use, too. An execution that takes longer is not short.
"""
_WEIGHT = 0.2  # of the newest execution in a moving average

Feed = Callable[[], None]


def worker_capacity() -> int:
    """Return how many workers can run next to the server on the available processors."""
    available = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    return max(available - 1, 1)


class ConcurrencyLimiter:
    """Limits a model to `max_running` concurrent executions while executions are short.

    A further execution would take processor time from the others and from the server. The waiting
    requests instead form larger batches, so the limiter is used only where batches can grow. A
    finishing instance may start its next batch immediately. Waiting instances are admitted after
    1.5 ms at the latest. All methods run on the event loop's thread.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, max_running: int) -> None:
        self._loop = loop
        self._max_running = max_running
        self._begun_ns: dict[Hashable, int] = {}
        self._waiting_ns: dict[Feed, int] = {}  # start of each wait, in order
        # No instance waits before executions are known to be short.
        self._mean_ns = float(_SHORT_NS)
        self._requested_again = False
        self._recheck_pending = False

    def admits(self, feed: Feed) -> bool:
        """Return whether an instance may begin; if not, call `feed` when it may try again."""
        self._requested_again = True
        now = now_ns()
        since = self._waiting_ns.setdefault(feed, now)
        if self._mean_ns >= _SHORT_NS or now - since >= _MAX_WAIT_NS or self._has_capacity(now):
            del self._waiting_ns[feed]
            return True
        self._schedule_recheck()
        return False

    def begin(self, instance: Hashable) -> None:
        """Record that an instance executes."""
        self._begun_ns.setdefault(instance, now_ns())

    def record(self, ns: int) -> None:
        """Record the duration of an execution."""
        self._mean_ns += _WEIGHT * (ns - self._mean_ns)

    def end(self, instance: Hashable) -> None:
        """Record that an instance has finished executing."""
        if self._begun_ns.pop(instance, None) is not None and self._waiting_ns:
            self._loop.call_soon(self._admit_waiting)

    def _has_capacity(self, now: int) -> bool:
        if len(self._begun_ns) < self._max_running:
            return True
        return (
            sum([begun > now - _MAX_WAIT_NS for begun in self._begun_ns.values()])
            < self._max_running
        )

    def _admit_waiting(self) -> None:
        """Let waiting instances try again while there is capacity.

        An instance without work leaves the capacity to the next one.
        """
        for feed in list(self._waiting_ns):
            if self._has_capacity(now_ns()):
                self._offer(feed)

    def _offer(self, feed: Feed) -> None:
        self._requested_again = False
        try:
            feed()
        finally:
            if not self._requested_again:  # it is gone or already has work
                self._waiting_ns.pop(feed, None)

    def _schedule_recheck(self) -> None:
        if not self._recheck_pending:
            self._recheck_pending = True
            self._loop.call_later(_MAX_WAIT_NS / 1e9, self._recheck)

    def _recheck(self) -> None:
        self._recheck_pending = False
        try:
            for feed in list(self._waiting_ns):
                self._offer(feed)
        finally:
            if self._waiting_ns:
                self._schedule_recheck()
