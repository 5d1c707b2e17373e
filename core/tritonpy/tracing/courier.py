"""Brings what is to be written to a thread of its own."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from queue import Full, Queue

log = logging.getLogger("tritonpy.tracing")
_MOST_WAITING = 4096
_CLOSE_S = 30.0


class Courier:
    """Runs errands in their order on one thread, which starts with the first. Errands that come faster than they are run are lost."""

    def __init__(self, most: int = _MOST_WAITING) -> None:
        self._errands: Queue[Callable[[], None] | None] = Queue(most)
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._closed = False
        self._full = False

    def send(self, errand: Callable[[], None]) -> None:
        """Have `errand` run soon; never blocks. What it raises is logged."""
        if self._thread is None:
            self._start()
        try:
            self._errands.put_nowait(errand)
            self._full = False
        except Full:
            if not self._full:  # once until there is room again, however many are lost
                self._full = True
                log.error("traces are lost: they come faster than they can be written")

    def close(self) -> bool:
        """Run what waits, then end the thread; gives up on errands that never end and returns False."""
        with self._starting:
            self._closed = True
            thread = self._thread
        if thread is None:
            return True
        try:
            self._errands.put(None, timeout=_CLOSE_S)
        except Full:
            thread.join(0)
        else:
            thread.join(_CLOSE_S)
        if thread.is_alive():
            log.error("traces are lost: they could not be written in %.0f s", _CLOSE_S)
        return not thread.is_alive()

    def _start(self) -> None:
        with self._starting:
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._run, name="traces", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while (errand := self._errands.get()) is not None:
            try:
                errand()
            except Exception:
                log.exception("a trace is lost")
