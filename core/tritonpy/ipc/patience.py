"""Whether a thread that waits for its socket looks at it for a while before it sleeps."""

from __future__ import annotations

import os
from collections.abc import Callable
from time import perf_counter_ns
from typing import TypeVar

LOOK_NS = 600_000  # a client at hand that sends one request after the other needs half of that from an answer to the next request
SOON_NS = 1_000_000  # waits that were longer are none to look through: nobody at hand is busy
_T = TypeVar("_T")
_yield: Callable[[], object] = getattr(os, "sched_yield", lambda: None)


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
