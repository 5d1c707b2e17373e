"""How often a client may ping: gRPC's rule, which ends the connections of clients that keep the server busy with it."""

from __future__ import annotations

from typing import NamedTuple

_WITHOUT_CALLS_S = 7_200.0  # as rarely as TCP itself would


class PingRules(NamedTuple):
    """A ping within `interval_s` of another is a strike; one more than `strikes` of them end a connection, 0 for any number.

    Without calls the interval is two hours, unless `without_calls`.
    """

    interval_s: float = 300.0
    strikes: int = 2
    without_calls: bool = False


class PingStrikes:
    """Counts on one connection; whatever the server sends of an answer wipes the strikes out. Pure: times are given, in seconds."""

    __slots__ = ("_last", "_rules", "_sends", "_strikes")

    def __init__(self, rules: PingRules) -> None:
        self._rules = rules
        self._last: float | None = None
        self._strikes = 0
        self._sends = 0

    def is_too_many(self, now: float, sends: int, *, idle: bool) -> bool:
        """Take note of a ping after `sends` parts of answers, on a connection that has no calls or has some; say whether it is one too many."""
        if sends != self._sends:
            self._sends, self._last, self._strikes = sends, None, 0
        rules, last = self._rules, self._last
        self._last = now
        interval = _WITHOUT_CALLS_S if idle and not rules.without_calls else rules.interval_s
        if last is None or now >= last + interval:
            return False
        self._strikes += 1
        return self._strikes > rules.strikes > 0
