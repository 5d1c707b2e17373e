"""Periodic checks for models that grew beyond the memory budget."""

from __future__ import annotations

import logging
import threading

from tritonpy.repository.budget.capacity import MemoryCapacity

log = logging.getLogger("tritonpy.repository")

INTERVAL_S = 2.0


class MemoryMonitor:
    """A thread that evicts idle models while too much memory is held.

    It starts with the first load and ends with `stop`.
    """

    def __init__(self, capacity: MemoryCapacity) -> None:
        self._capacity = capacity
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._guard = threading.Lock()
        self._problem = ""

    def start(self) -> None:
        """Start the thread unless it runs."""
        with self._guard:
            if self._thread is None and not self._stopped.is_set():
                self._thread = threading.Thread(target=self._run, name="memory budget", daemon=True)
                self._thread.start()

    def stop(self) -> None:
        """Stop the thread."""
        self._stopped.set()
        with self._guard:
            thread = self._thread
        if thread is not None:
            thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(INTERVAL_S):
            try:
                problem = self._capacity.evict_excess()
            except Exception:
                log.exception("the check of the memory budget failed")
                continue
            if problem and not self._problem:
                log.warning("models grew beyond the memory budget, and none can be evicted: %s", problem)
            self._problem = problem
