"""Timeouts of a connection: handshake, keepalive, idle time and age."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import NamedTuple, Protocol

_PAUSE_S = 60.0  # between pings while no response data is sent
_CHECKS_PER_PERIOD = 8  # checks per idle period
_JITTER = 0.1  # spreads the closing of connections opened at the same time


class TimeoutSettings(NamedTuple):
    """Timeouts in seconds.

    `pings` limits consecutive pings without response data, 0 for no limit.
    """

    handshake: float = 60.0
    keepalive: float = 7200.0
    keepalive_timeout: float = 20.0
    without_calls: bool = False
    pings: int = 2
    age: float = math.inf
    grace: float = math.inf
    idle: float = math.inf


class TimedConnection(Protocol):
    """The interface of a connection for its timeouts."""

    last_received: float  # time of the last received data or reading progress

    def is_started(self) -> bool:
        """Return whether the client has sent its settings."""

    def calls(self) -> int:
        """Return the number of open calls."""

    def activity(self) -> int:
        """Return a counter of calls and sent response parts."""

    def ping(self, on_ack: Callable[[], None]) -> None:
        """Send a ping; `on_ack` is called on its acknowledgement."""

    def start_draining(self, text: str) -> None:
        """Send GOAWAY, so that the client opens another connection for new calls."""

    def finish(self, text: str) -> None:
        """Close after the open calls have ended."""

    def fail(self, text: str) -> None:
        """Send the reason and close."""

    def abort(self) -> None:
        """Close immediately."""


class ConnectionTimeouts:
    """Applies the timeouts of one connection. `check` returns the time of the next check."""

    def __init__(
        self, connection: TimedConnection, timeout_settings: TimeoutSettings, now: float
    ) -> None:
        self._connection = connection
        self._timeout_settings = timeout_settings
        self._handshake_by = now + timeout_settings.handshake
        self._ping_at = now + timeout_settings.keepalive
        self._pong_by = math.inf
        self._pings = 0
        self._drain_at = now + timeout_settings.age * random.uniform(1 - _JITTER, 1 + _JITTER)  # noqa: S311 - not security-relevant
        self._abort_at = math.inf
        self._idle_at = now + timeout_settings.idle / _CHECKS_PER_PERIOD
        self._idle_since = now
        self._activity = 0
        self._activity_at_ping = 0

    def check(self, now: float) -> float:
        """Apply due timeouts and return the time of the next check.

        The time is infinity after the connection ended.
        """
        if now >= min(self._handshake_by, self._abort_at):
            if now >= self._abort_at or not self._connection.is_started():
                self._connection.abort()
                return math.inf
            self._handshake_by = math.inf
        if now >= self._pong_by:
            self._pong_by = max(
                self._pong_by,
                self._connection.last_received + self._timeout_settings.keepalive_timeout,
            )
            if now >= self._pong_by:
                self._connection.fail("ping_timeout")
                return math.inf
        if now >= self._ping_at:
            self._keep_alive(now)
        if now >= self._drain_at:
            self._drain_at = math.inf
            self._abort_at = now + self._timeout_settings.grace
            self._connection.start_draining("max_age")
        if now >= self._idle_at:
            self._check_idle(now)
        return min(
            self._handshake_by,
            self._ping_at,
            self._pong_by,
            self._drain_at,
            self._abort_at,
            self._idle_at,
        )

    def _keep_alive(self, now: float) -> None:
        timeout_settings, connection = self._timeout_settings, self._connection
        silent_until = connection.last_received + timeout_settings.keepalive
        if now < silent_until:
            self._ping_at = silent_until
            return
        if self._pong_by < math.inf:  # another ping would delay the timeout of the pending one
            self._ping_at = self._pong_by
            return
        self._ping_at = now + timeout_settings.keepalive
        if not (timeout_settings.without_calls or connection.calls()):
            return
        activity = connection.activity()
        if activity != self._activity_at_ping:
            self._activity_at_ping, self._pings = activity, 0
        self._pings += 1
        if 0 < timeout_settings.pings <= self._pings:
            self._ping_at = max(self._ping_at, now + _PAUSE_S)
        self._pong_by = now + timeout_settings.keepalive_timeout
        connection.ping(self._on_ack)

    def _on_ack(self) -> None:
        self._pong_by = math.inf

    def _check_idle(self, now: float) -> None:
        """Close an idle connection.

        Calls do not record times; a call that ended since the last check counts as ending now.
        """
        idle, activity = self._timeout_settings.idle, self._connection.activity()
        if self._connection.calls() or activity != self._activity:
            self._activity, self._idle_since = activity, now
        if now < self._idle_since + idle:
            self._idle_at = min(now + idle / _CHECKS_PER_PERIOD, self._idle_since + idle)
        else:
            self._idle_at = math.inf
            self._connection.finish("connection idle")
