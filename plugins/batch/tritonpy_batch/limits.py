"""What is in flight: bytes of rows, and requests, whose number is found while the job runs."""

from __future__ import annotations

import threading
import time

_WINDOW_S = 0.5
_LEAST_REQUESTS = 16
_LEAST = 16
_GAIN = 1.03
_HOLD_WINDOWS = 40
_GROWTH = 1.5


class JobStopped(Exception):
    """The job ends: raised in threads that wait."""


class ByteLimit:
    """Bounds the bytes of rows in memory. A block larger than the limit waits to be alone."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._used = 0
        self._stopped = False
        self._changed = threading.Condition()

    def acquire(self, nbytes: int) -> None:
        """Wait for room. Raises JobStopped."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._stopped or not self._used or self._used + nbytes <= self._limit
            )
            if self._stopped:
                raise JobStopped
            self._used += nbytes

    def release(self, nbytes: int) -> None:
        """Return room."""
        with self._changed:
            self._used -= nbytes
            self._changed.notify_all()

    def stop(self) -> None:
        """Wake up everything that waits."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()


class ConcurrencyLimit:
    """Bounds requests in flight; changes the bound unless it is `fixed`.

    It begins with 16 requests, or two per instance if that is more. It grows by half while that
    raises the throughput by 3 %, then stays, and tries again after some time.
    """

    def __init__(self, instances: int, highest: int, fixed: int = 0) -> None:
        self._highest = highest
        self._fixed = bool(fixed)
        self.level = min(fixed or max(2 * instances, _LEAST), highest)
        self._in_flight = 0
        self._stopped = False
        self._changed = threading.Condition()
        self._window_start = time.monotonic()
        self._window_rows = self._window_requests = 0
        self._best_rate = 0.0
        self._best_level = self.level
        self._hold = 0

    def acquire(self) -> None:
        """Wait until a request may start. Raises JobStopped."""
        with self._changed:
            while not self._stopped and self._in_flight >= self.level:
                self._changed.wait()
            if self._stopped:
                raise JobStopped
            self._in_flight += 1

    def release(self, rows: int) -> None:
        """Count a finished request of `rows` rows."""
        with self._changed:
            self._in_flight -= 1
            self._window_rows += rows
            self._window_requests += 1
            if not self._fixed:
                self._adapt()
            # readers wake up for several requests at once
            if 2 * self._in_flight <= self.level:
                self._changed.notify()

    def stop(self) -> None:
        """Wake up everything that waits."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def pause(self, seconds: float) -> None:
        """Wait before a retry. Raises JobStopped."""
        with self._changed:
            if self._changed.wait_for(lambda: self._stopped, seconds):
                raise JobStopped

    def _adapt(self) -> None:
        now = time.monotonic()
        elapsed = now - self._window_start
        if elapsed < _WINDOW_S or self._window_requests < max(_LEAST_REQUESTS, 4 * self.level):
            return
        rate = self._window_rows / elapsed
        self._window_start, self._window_rows, self._window_requests = now, 0, 0
        if self._hold:
            self._hold -= 1
            if not self._hold:
                self._best_rate = 0.0
            return
        if rate > self._best_rate * _GAIN:
            self._best_rate, self._best_level = rate, self.level
            grown = min(max(self.level + 1, int(self.level * _GROWTH)), self._highest)
            if grown > self.level:
                self.level = grown
                self._changed.notify_all()
                return
        self.level, self._hold = self._best_level, _HOLD_WINDOWS
