"""Limits on what a client may do that costs the server more than the client."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tritonpy_http2.codes import ENHANCE_YOUR_CALM
from tritonpy_http2.errors import Http2ConnectionError

_BURST = 1_000
_PER_SECOND = 100
_WITHOUT_CALLS_S = 7_200.0  # the keepalive interval of TCP


class AbuseBudget:
    """Credit consumed by resets, pings, settings and empty frames.

    Time and completed calls refill it. `clock` returns seconds.
    """

    __slots__ = ("_at", "_clock", "_credit")

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._at = clock()
        self._credit = float(_BURST)

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


class PingRules(NamedTuple):
    """A ping within `interval_s` of the previous one is a strike.

    More than `strikes` close the connection; 0: no limit.

    Without open calls the interval is two hours, unless `without_calls` is set.
    """

    interval_s: float = 300.0
    strikes: int = 2
    without_calls: bool = False


class PingStrikeCounter:
    """Counts the ping strikes of one connection. Sending response data resets the count."""

    __slots__ = ("_last_ping", "_rules", "_sends", "_strikes")

    def __init__(self, rules: PingRules) -> None:
        self._rules = rules
        self._last_ping: float | None = None
        self._strikes = 0
        self._sends = 0

    def record_ping(self, now: float, sends: int, *, idle: bool) -> bool:
        """Record a ping at `now` (seconds); return whether there are too many strikes.

        `sends` counts sent response parts; `idle` is whether the connection has no open calls.
        """
        if sends != self._sends:
            self._sends, self._last_ping, self._strikes = sends, None, 0
        rules, last = self._rules, self._last_ping
        self._last_ping = now
        interval = _WITHOUT_CALLS_S if idle and not rules.without_calls else rules.interval_s
        if last is None or now >= last + interval:
            return False
        self._strikes += 1
        return self._strikes > rules.strikes > 0
