"""The budget of a connection for operations that cost the server more than the client."""

from __future__ import annotations

from collections.abc import Callable

from tritonpy_frontend_h2.http2.codes import ENHANCE_YOUR_CALM
from tritonpy_frontend_h2.http2.errors import Http2ConnectionError

_BURST = 1_000
_PER_SECOND = 100


class AbuseBudget:
    """Credit consumed by resets, pings, settings and empty frames.

    Time and completed calls refill it. `clock` returns seconds.
    """

    __slots__ = ("_at", "_clock", "_credit")

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._at = clock()
        self._credit: float = _BURST

    def charge(self, operations: str, cost: float = 1.0) -> None:
        """Charge one operation. Raises Http2ConnectionError if the credit is used up."""
        if self._credit < 1:
            now = self._clock()
            self._credit = min(self._credit + (now - self._at) * _PER_SECOND, _BURST)
            self._at = now
            if self._credit < 1:
                raise Http2ConnectionError(ENHANCE_YOUR_CALM, f"too many {operations}")
        self._credit -= cost

    def refund(self) -> None:
        """Refund credit for a completed call."""
        if self._credit < _BURST:
            self._credit += 1
