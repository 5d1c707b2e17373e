"""Whether a thread that waits for its socket looks at it for a while before it sleeps."""

from __future__ import annotations

import os
from collections.abc import Callable
from time import perf_counter_ns
from typing import TypeVar

LOOK_NS = 600_000  # a client at hand that sends one request after the other needs half of that from an answer to the next request
SOON_NS = 1_000_000  # waits that were longer are none to look through: nobody at hand is busy
CROWDED_NS = 100_000  # who gave way and came back later than that had others before it: the processor is wanted
MOST_WARY = 255  # waits without a look after looks that were in vain
_T = TypeVar("_T")
_yield: Callable[[], object] = getattr(os, "sched_yield", lambda: None)


class Patience:
    """Looks again and again where the wait before was short, and sleeps otherwise.

    A sleep costs a wake-up, and cold caches after it: a quarter of the latency of small requests that come one after the other. Who else wants the
    processor gets it at each look. A look in vain, or one that took the processor from others, is not repeated soon: each doubles the waits that are slept
    through at once, until a look finds something.
    """

    def __init__(self, clock: Callable[[], int] = perf_counter_ns, give_way: Callable[[], object] = _yield) -> None:
        self._clock = clock
        self._give_way = give_way
        self._short = False  # the last wait was
        self._wary = 0  # waits to sleep through after the next look in vain, but for one
        self._asleep = 0  # waits to sleep through now

    def wait(self, look: Callable[[], _T | None], sleep: Callable[[], _T]) -> _T:
        """Return what `look` finds (None: nothing yet), or what `sleep` does."""
        begin = self._clock()
        if self._short and self._asleep == 0:
            found = self._look(look, begin)
            if found is not None:
                self._wary = 0
                return found
            self._asleep = self._wary = min(2 * self._wary + 1, MOST_WARY)
        elif self._asleep:
            self._asleep -= 1
        found = sleep()
        self._short = self._clock() - begin < SOON_NS
        return found

    def _look(self, look: Callable[[], _T | None], begin: int) -> _T | None:
        now = begin
        while now - begin < LOOK_NS:
            found = look()
            if found is not None:
                return found
            self._give_way()
            before, now = now, self._clock()
            if now - before > CROWDED_NS:
                return None
        return None
