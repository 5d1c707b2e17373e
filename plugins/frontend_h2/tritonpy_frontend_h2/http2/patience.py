"""What costs the server more than the client may be done now and then, not in a flood."""

from __future__ import annotations

from collections.abc import Callable

from tritonpy_frontend_h2.http2.codes import ENHANCE_YOUR_CALM
from tritonpy_frontend_h2.http2.faults import ConnectionFault

_BURST = 1_000
_PER_SECOND = 100


class Patience:
    """Credit that resets, pings, settings and empty frames use up; time and answered calls bring it back. `clock` counts seconds."""

    __slots__ = ("_at", "_clock", "_credit")

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._at = clock()
        self._credit: float = _BURST

    def charge(self, what: str, cost: float = 1.0) -> None:
        """Take note of one. Raises ConnectionFault where there were too many."""
        if self._credit < 1:
            now = self._clock()
            self._credit = min(self._credit + (now - self._at) * _PER_SECOND, _BURST)
            self._at = now
            if self._credit < 1:
                raise ConnectionFault(ENHANCE_YOUR_CALM, f"too many {what}")
        self._credit -= cost

    def earn(self) -> None:
        """Take note of a call that was answered."""
        if self._credit < _BURST:
            self._credit += 1
