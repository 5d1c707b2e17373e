"""Finds the garbage that retired models leave, and lets requests wait for that but a small part of the time."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable

# The collector holds the interpreter while it looks at every object that there is: for so much of the time at most.
SHARE = 1 / 500


class Sweeping:
    """Collects after retirements: at once after a rest, which is as long as the last collection made it, otherwise when that is over."""

    def __init__(
        self,
        collect: Callable[[], object] = gc.collect,
        clock: Callable[[], float] = time.monotonic,
        spent: Callable[[], float] = time.thread_time,
    ) -> None:
        self._collect = collect
        self._clock = clock
        self._spent = spent
        self._rest_s = 0.0
        self._rested_at = clock()
        self._later: threading.Timer | None = None
        self._guard = threading.Lock()

    def sweep(self) -> None:
        """Collect now, or once later for all who ask until then."""
        with self._guard:
            wait_s = self._rested_at - self._clock()
            if wait_s > 0:
                if self._later is None:
                    self._later = threading.Timer(wait_s, self._run)
                    self._later.daemon = True
                    self._later.start()
                return
        self._run()

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
