"""A timer thread for the whole server."""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
from collections.abc import Callable

from tritonpy_types.clock import now_ns

log = logging.getLogger("tritonpy.timer")


class Timer:
    """Calls functions at given times.

    The thread starts with the first call of `at` and ends with `stop`. Callbacks must be fast. One
    that raises is logged.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._stopped = False

    def at(self, when_ns: int, callback: Callable[[], None]) -> None:
        """Call `callback` once, at or soon after `when_ns` on the server's clock."""
        with self._changed:
            heapq.heappush(self._heap, (when_ns, next(self._order), callback))
            if self._thread is None and not self._stopped:
                self._thread = threading.Thread(target=self._run, name="timer", daemon=True)
                self._thread.start()
            elif self._heap[0][0] == when_ns:
                self._changed.notify()

    def stop(self) -> None:
        """Discard pending callbacks and end the thread."""
        with self._changed:
            self._stopped = True
            self._heap.clear()
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while (callback := self._next()) is not None:
            try:
                callback()
            except Exception:
                log.exception("a timer callback failed")

    def _next(self) -> Callable[[], None] | None:
        with self._changed:
            while not self._stopped:
                if not self._heap:
                    self._changed.wait()
                elif (wait_ns := self._heap[0][0] - now_ns()) > 0:
                    self._changed.wait(min(wait_ns / 1e9, threading.TIMEOUT_MAX))
                else:
                    return heapq.heappop(self._heap)[2]
        return None
