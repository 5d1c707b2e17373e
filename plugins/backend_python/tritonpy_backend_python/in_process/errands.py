"""What must not be done where it comes up."""

from __future__ import annotations

import logging
from collections.abc import Callable
from queue import SimpleQueue
from threading import Lock, Thread

log = logging.getLogger("tritonpy.backend")


class Errands:
    """Runs functions in a thread of its own: destructors, which run in the middle of anything, may neither lock nor answer."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._errands: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._lock = Lock()
        self._thread: Thread | None = None

    def begin(self) -> None:
        """Be there from now on: something was made whose end is an errand."""
        with self._lock:
            if self._thread is None:
                self._thread = Thread(target=self._run, name=f"{self._name}-errands", daemon=True)
                self._thread.start()

    def add(self, errand: Callable[[], object]) -> None:
        """Have it run; safe in a destructor."""
        self._errands.put(errand)

    def end(self) -> None:
        """Run what was added, and end the thread."""
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None:
            self._errands.put(None)
            thread.join()

    def _run(self) -> None:
        while (errand := self._errands.get()) is not None:
            try:
                errand()
            except Exception:
                log.exception("%s failed to clean up", self._name)
