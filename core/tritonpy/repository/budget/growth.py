"""Looks again and again at what models hold: what is loaded may grow."""

from __future__ import annotations

import logging
import threading

from tritonpy.repository.budget.room import Room

log = logging.getLogger("tritonpy.repository")

LOOK_S = 2.0


class GrowthWatch:
    """A thread that has idle models go while more is held than may be. It starts with the first load and ends with `stop`."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._guard = threading.Lock()
        self._complaint = ""

    def start(self) -> None:
        """Look from now on; may be said again."""
        with self._guard:
            if self._thread is None and not self._stopped.is_set():
                self._thread = threading.Thread(target=self._run, name="memory budget", daemon=True)
                self._thread.start()

    def stop(self) -> None:
        """End."""
        self._stopped.set()
        with self._guard:
            thread = self._thread
        if thread is not None:
            thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(LOOK_S):
            try:
                complaint = self._room.shrink()
            except Exception:
                log.exception("the memory budget was not looked after")
                continue
            if complaint and not self._complaint:
                log.warning("models grew beyond the memory budget and nobody can go: %s", complaint)
            self._complaint = complaint
