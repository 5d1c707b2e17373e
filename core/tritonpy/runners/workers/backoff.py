"""How long to wait before a worker is started again."""

from __future__ import annotations

_FIRST_S, _LONGEST_S = 0.25, 30.0
SETTLED_S = 60.0  # a worker that lived this long was well: the next restart is at once again


class Backoff:
    """At once after a long life, then longer and longer while workers die young."""

    def __init__(self) -> None:
        self._next_s = 0.0

    def delay_s(self, lived_s: float) -> float:
        """Return the wait in seconds after a worker that lived for `lived_s`."""
        if lived_s >= SETTLED_S:
            self._next_s = 0.0
        delay, self._next_s = self._next_s, min(max(_FIRST_S, 2 * self._next_s), _LONGEST_S)
        return delay
