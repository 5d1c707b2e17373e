"""Garbage collection after models are closed, limited to a small share of the time."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable

# A full collection holds the GIL while it visits every object. This limits its share of time.
MAX_TIME_SHARE = 1 / 500
YOUNG_GENERATION = 1  # covers models that were loaded and closed since the last collections


def collect_young() -> None:
    """Collect recently created objects."""
    gc.collect(YOUNG_GENERATION)


class ThrottledCollector:
    """Collects garbage after models are closed, with pauses in proportion to the collection time.

    During a pause, only young objects are collected. A full collection follows at its end.
    """

    def __init__(
        self,
        collect: Callable[[], object] = gc.collect,
        young: Callable[[], object] = collect_young,
        clock: Callable[[], float] = time.monotonic,
        thread_time: Callable[[], float] = time.thread_time,
    ) -> None:
        self._collect = collect
        self._collect_young = young
        self._clock = clock
        self._thread_time = thread_time
        self._pause_s = 0.0
        self._paused_until = clock()
        self._timer: threading.Timer | None = None
        self._guard = threading.Lock()

    def collect(self) -> None:
        """Collect now, or once at the end of the pause for all calls until then."""
        if self._is_paused():
            self._collect_young()
        else:
            self._run()

    def _is_paused(self) -> bool:
        """Return whether a pause is on, and schedule a collection at its end."""
        with self._guard:
            wait_s = self._paused_until - self._clock()
            if wait_s > 0 and self._timer is None:
                self._timer = threading.Timer(wait_s, self._run)
                self._timer.daemon = True
                self._timer.start()
            return wait_s > 0

    def close(self) -> None:
        """Cancel the scheduled collection."""
        with self._guard:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    def _run(self) -> None:
        with self._guard:
            self._timer = None  # a later call may be too late for this collection
            self._paused_until = self._clock() + self._pause_s
        started = self._thread_time()
        self._collect()
        with self._guard:
            self._pause_s = (self._thread_time() - started) / MAX_TIME_SHARE
            self._paused_until = self._clock() + self._pause_s
