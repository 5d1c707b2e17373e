"""Whether a thread that waits for its socket looks at it for a while before it sleeps."""

from __future__ import annotations

import os
from collections.abc import Callable
from time import perf_counter_ns
from typing import TypeVar

LOOK_NS = 600_000  # a client at hand that sends one request after the other needs half of that from an answer to the next request
SOON_NS = 1_000_000  # waits that were longer are none to look through: nobody at hand is busy
STEADY = 8  # frames in a row: under load single requests come too, but not that often
_T = TypeVar("_T")
_yield: Callable[[], object] = getattr(os, "sched_yield", lambda: None)


class Alone:
    """Whether requests come one after the other, and never two together: somebody waits for each of them before the next one."""

    def __init__(self) -> None:
        self._frames = 0

    def came(self, requests: int) -> bool:
        """Take note of a frame with so many requests; return what is to be thought of the next one."""
        self._frames = self._frames + 1 if requests == 1 else 0
        return self._frames >= STEADY


class Patience:
    """Looks again and again where the wait before was short, and sleeps otherwise.

    A sleep costs a wake-up, and cold caches after it: a quarter of the latency of small requests that come one after the other. Who else wants the
    processor gets it at each look.
    """

    def __init__(self, clock: Callable[[], int] = perf_counter_ns) -> None:
        self._clock = clock
        self._short = False  # the last wait was

    def wait(self, look: Callable[[], _T | None], sleep: Callable[[], _T]) -> _T:
        """Return what `look` finds (None: nothing yet), or what `sleep` does."""
        begin = self._clock()
        if self._short:
            while self._clock() - begin < LOOK_NS:
                found = look()
                if found is not None:
                    return found
                _yield()
        found = sleep()
        self._short = self._clock() - begin < SOON_NS
        return found
