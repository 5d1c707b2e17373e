"""Finds the garbage that retired models leave, and lets requests wait for that but a small part of the time."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable

# The collector holds the interpreter while it looks at every object that there is: for so much of the time at most.
SHARE = 1 / 500
YOUNG = 1  # the generations up to this one have what was made since the last looks: few objects, and all of a model that came and went at once


def collect_young() -> None:
    """Find the garbage among what was made lately."""
    gc.collect(YOUNG)


class Sweeping:
    """Collects after retirements: at once after a rest, which is as long as the last collection made it, otherwise when that is over.

    Young objects are collected at once even then.
    """

    def __init__(
        self,
        collect: Callable[[], object] = gc.collect,
        young: Callable[[], object] = collect_young,
        clock: Callable[[], float] = time.monotonic,
        spent: Callable[[], float] = time.thread_time,
    ) -> None:
        self._collect = collect
        self._collect_young = young
        self._clock = clock
        self._spent = spent
        self._rest_s = 0.0
        self._rested_at = clock()
        self._later: threading.Timer | None = None
        self._guard = threading.Lock()

    def sweep(self) -> None:
        """Collect now, or once later for all who ask until then."""
        if self._rests():
            self._collect_young()
        else:
            self._run()

    def _rests(self) -> bool:
        """Say whether it rests; what is to be collected then is collected when it has rested."""
        with self._guard:
            wait_s = self._rested_at - self._clock()
            if wait_s > 0 and self._later is None:
                self._later = threading.Timer(wait_s, self._run)
                self._later.daemon = True
                self._later.start()
            return wait_s > 0

    def close(self) -> None:
        """Forget what was to be done later."""
        with self._guard:
            if self._later is not None:
                self._later.cancel()
                self._later = None

    def _run(self) -> None:
        with self._guard:
            self._later = None  # whoever asks from now on may have come too late for this collection
            self._rested_at = self._clock() + self._rest_s
        began = self._spent()
        self._collect()
        with self._guard:
            self._rest_s = (self._spent() - began) / SHARE
            self._rested_at = self._clock() + self._rest_s
