"""A thread for cleanup functions of destructors."""

from __future__ import annotations

import logging
from collections.abc import Callable
from queue import SimpleQueue
from threading import Lock, Thread

log = logging.getLogger("tritonpy.backend")


class CleanupThread:
    """Runs the cleanup functions of destructors in its own thread.

    Destructors interrupt arbitrary code, so they must not take locks or send responses.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._cleanup: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._lock = Lock()
        self._thread: Thread | None = None

    def begin(self) -> None:
        """Start the thread if necessary.

        Call this before an object exists whose destructor calls `add`.
        """
        with self._lock:
            if self._thread is None:
                self._thread = Thread(target=self._run, name=f"{self._name}-cleanup", daemon=True)
                self._thread.start()

    def add(self, function: Callable[[], object]) -> None:
        """Submit a function. Safe in a destructor."""
        self._cleanup.put(function)

    def end(self) -> None:
        """Run the submitted functions and stop the thread."""
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None:
            self._cleanup.put(None)
            thread.join()

    def _run(self) -> None:
        while (function := self._cleanup.get()) is not None:
            try:
                function()
            except Exception:
                log.exception("%s failed to clean up", self._name)
