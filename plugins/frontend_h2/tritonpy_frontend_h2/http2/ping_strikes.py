"""gRPC's limit on the pings of a client."""

from __future__ import annotations

from typing import NamedTuple

_WITHOUT_CALLS_S = 7_200.0  # the keepalive interval of TCP


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
