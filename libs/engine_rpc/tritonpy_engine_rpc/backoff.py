"""Delays before a worker is restarted."""

from __future__ import annotations

_FIRST_S = 0.25
_MAX_DELAY_S = 1.0  # after a worker that had started: one request may have ended it, and others wait
_MAX_START_DELAY_S = 30.0  # while starts fail: requests are refused meanwhile
SETTLED_S = 60.0  # a worker that lived this long was healthy: the next restart is immediate


class Backoff:
    """Restart delays, which increase while workers die early or fail to start."""

    def __init__(self) -> None:
        self._next_s = 0.0
        self._failures = 0

    def after_death_s(self, lived_s: float) -> float:
        """Return the delay in seconds after the death of a worker that lived for `lived_s`."""
        self._failures = 0
        if lived_s >= SETTLED_S:
            self._next_s = 0.0
        delay, self._next_s = self._next_s, min(max(_FIRST_S, 2 * self._next_s), _MAX_DELAY_S)
        return delay

    def after_failed_start_s(self) -> float:
        """Return the delay in seconds after a failed start."""
        self._failures += 1
        return float(min(_FIRST_S * 2 ** min(self._failures - 1, 20), _MAX_START_DELAY_S))
