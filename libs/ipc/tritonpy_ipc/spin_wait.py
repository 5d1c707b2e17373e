"""Polling of a socket before a thread sleeps, while requests come in quick succession."""

from __future__ import annotations

import os
from collections.abc import Callable
from time import perf_counter_ns
from typing import TypeVar

# A local client that sends requests sequentially needs half of this time for its next request.
SPIN_NS = 600_000
SHORT_WAIT_NS = 1_000_000  # a longer wait shows that no local client is busy
# Consecutive frames with one request: under load there are some, but rarely so many in a row.
STEADY_FRAMES = 8
_T = TypeVar("_T")
_yield: Callable[[], object] = getattr(os, "sched_yield", lambda: None)


class SequentialTraffic:
    """Detects clients that wait for each response before they send the next request."""

    def __init__(self) -> None:
        self._frames = 0

    def observe(self, requests: int) -> bool:
        """Record a frame of `requests` requests; return whether the next is likely to be single."""
        self._frames = self._frames + 1 if requests == 1 else 0
        return self._frames >= STEADY_FRAMES


class SpinWait:
    """Polls if the previous wait was short, and sleeps otherwise.

    A thread that sleeps must be woken and then finds cold caches. This takes a quarter of the
    latency of small sequential requests. Each poll yields the processor to other threads.
    """

    def __init__(self, clock: Callable[[], int] = perf_counter_ns) -> None:
        self._clock = clock
        self._last_was_short = False  # whether the last wait was short

    def wait(self, poll: Callable[[], _T | None], block: Callable[[], _T]) -> _T:
        """Return the result of `poll` (None: nothing yet), or else of `block`."""
        begin = self._clock()
        if self._last_was_short:
            while self._clock() - begin < SPIN_NS:
                found = poll()
                if found is not None:
                    return found
                _yield()
        found = block()
        self._last_was_short = self._clock() - begin < SHORT_WAIT_NS
        return found
