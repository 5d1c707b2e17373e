"""Arrival rate in rows per nanosecond."""

from __future__ import annotations

_MEMORY = 0.97  # weight decay per batch


class Rate:
    """Average over about the last thirty batches. `value` is 0 until the second batch."""

    def __init__(self) -> None:
        self.value = 0.0
        self._rows = 0.0
        self._time_ns = 0.0
        self._last_ns = 0

    def learn(self, rows: int, now_ns: int) -> None:
        """Record a batch that starts."""
        if self._last_ns:
            self._rows = _MEMORY * self._rows + rows
            self._time_ns = _MEMORY * self._time_ns + max(now_ns - self._last_ns, 1)
            self.value = self._rows / self._time_ns
        self._last_ns = now_ns
