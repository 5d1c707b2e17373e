"""How long to wait before a worker is started again."""

from __future__ import annotations

_FIRST_S = 0.25
_LONGEST_S = 1.0  # after a worker that had started: it may have been one request that ended it, and others wait
_LONGEST_BETWEEN_STARTS_S = 30.0  # while starts fail: requests are refused meanwhile
SETTLED_S = 60.0  # a worker that lived this long was well: the next restart is at once again


class Backoff:
    """At once after a long life, then longer and longer while workers die young or fail to start."""

    def __init__(self) -> None:
        self._next_s = 0.0
        self._failures = 0

    def after_death_s(self, lived_s: float) -> float:
        """Return the wait in seconds after a worker that had started and lived for `lived_s`."""
        self._failures = 0
        if lived_s >= SETTLED_S:
            self._next_s = 0.0
        delay, self._next_s = self._next_s, min(max(_FIRST_S, 2 * self._next_s), _LONGEST_S)
        return delay

    def after_failed_start_s(self) -> float:
        """Return the wait in seconds after a start that failed."""
        self._failures += 1
        return float(min(_FIRST_S * 2 ** min(self._failures - 1, 20), _LONGEST_BETWEEN_STARTS_S))
