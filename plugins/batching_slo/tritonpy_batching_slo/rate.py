"""How many rows come, per nanosecond."""

from __future__ import annotations

_MEMORY = 0.97  # of a batch's weight when the next one leaves


class Rate:
    """`value` is that of the last thirty batches or so; 0 until there are two."""

    def __init__(self) -> None:
        self.value = 0.0
        self._rows = 0.0
        self._time_ns = 0.0
        self._last_ns = 0

    def learn(self, rows: int, now_ns: int) -> None:
        """Take note of a batch that leaves."""
        if self._last_ns:
            self._rows = _MEMORY * self._rows + rows
            self._time_ns = _MEMORY * self._time_ns + max(now_ns - self._last_ns, 1)
            self.value = self._rows / self._time_ns
        self._last_ns = now_ns
