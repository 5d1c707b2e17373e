"""A thread that writes traces."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from queue import Full, Queue

log = logging.getLogger("tritonpy.tracing")
_MAX_WAITING = 4096
_CLOSE_S = 30.0


class TraceThread:
    """Runs tasks in order in one thread, which starts with the first task.

    Tasks are lost if the queue is full.
    """

    def __init__(self, max_waiting: int = _MAX_WAITING) -> None:
        self._tasks: Queue[Callable[[], None] | None] = Queue(max_waiting)
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._closed = False
        self._full = False

    def send(self, task: Callable[[], None]) -> None:
        """Queue `task` and return immediately. Exceptions of the task are logged."""
        if self._thread is None:
            self._start()
        try:
            self._tasks.put_nowait(task)
            self._full = False
        except Full:
            if not self._full:  # log once until the queue has space again
                self._full = True
                log.error("traces are lost: they arrive faster than they can be written")

    def close(self) -> bool:
        """Run the queued tasks, then end the thread.

        Returns False if it does not end within 30 s.
        """
        with self._starting:
            self._closed = True
            thread = self._thread
        if thread is None:
            return True
        try:
            self._tasks.put(None, timeout=_CLOSE_S)
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
        while (task := self._tasks.get()) is not None:
            try:
                task()
            except Exception:
                log.exception("a trace is lost")
