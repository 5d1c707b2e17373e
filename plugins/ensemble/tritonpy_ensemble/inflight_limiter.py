"""The limit of calls in flight per step: `max_inflight_requests`."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from tritonpy_ensemble.serial_executor import SerialExecutor


class _WaitingCall(NamedTuple):
    owner: object
    start: Callable[[], None]


class InflightLimiter:
    """Allows `limit` calls of a step at a time, over all requests. Others wait in order.

    No thread waits.
    """

    def __init__(self, limit: int) -> None:
        self._free = limit
        self._waiting: deque[_WaitingCall] = deque()
        self._lock = threading.Lock()
        self._executor = SerialExecutor()

    def try_acquire(self, owner: object, start: Callable[[], None]) -> bool:
        """Return True if a call may start now.

        Otherwise queue `start`, which is called once, in any thread, when the call may start. Every
        started call needs one `release`.
        """
        with self._lock:
            if self._free and not self._waiting:
                self._free -= 1
                return True
            self._waiting.append(_WaitingCall(owner, start))
            return False

    def release(self) -> None:
        """Record the end of a call and start waiting ones."""
        with self._lock:
            self._free += 1
            if not self._waiting:
                return
        self._executor.execute(self._admit)

    def remove(self, owner: object) -> int:
        """Remove the waiting calls of `owner`. Return their number."""
        with self._lock:
            before = len(self._waiting)
            self._waiting = deque(each for each in self._waiting if each.owner is not owner)
            return before - len(self._waiting)

    def _admit(self) -> None:
        while True:
            with self._lock:
                if not self._free or not self._waiting:
                    return
                self._free -= 1
                start = self._waiting.popleft().start
            start()
