"""What time does to a connection: one that does not begin, is silent, idle or old ends."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import NamedTuple, Protocol

_PAUSE_S = 60.0  # between pings that no answer was sent in between of
_LOOKS = 8  # for each time that a connection may be idle
_JITTER = 0.1  # connections that came together do not leave together


class Times(NamedTuple):
    """Seconds; `pings` is how many pings in a row are sent without an answer in between, 0 for any."""

    handshake: float = 60.0
    keepalive: float = 7200.0
    keepalive_timeout: float = 20.0
    without_calls: bool = False
    pings: int = 2
    age: float = math.inf
    grace: float = math.inf
    idle: float = math.inf


class Watched(Protocol):
    """A connection, as far as time concerns it."""

    heard: float  # when something came, or the client read

    def begun(self) -> bool:
        """Whether the client began to speak HTTP/2."""

    def calls(self) -> int:
        """How many calls are open."""

    def activity(self) -> int:
        """Return a number that grows with every call and every part of an answer."""

    def ping(self, answered: Callable[[], None]) -> None:
        """Ask for a sign of life."""

    def retire(self, text: str) -> None:
        """Ask the client to take another connection for new calls."""

    def finish(self, text: str) -> None:
        """Close, once the calls that are open are answered."""

    def fail(self, text: str) -> None:
        """Tell the client why, and close."""

    def abort(self) -> None:
        """Close at once."""


class Watch:
    """Looks after one connection; `look` is called when its time has come, and says when it wants to be called again."""

    def __init__(self, watched: Watched, times: Times, now: float) -> None:
        self._watched = watched
        self._times = times
        self._handshake_by = now + times.handshake
        self._ping_at = now + times.keepalive
        self._pong_by = math.inf
        self._pings = 0
        self._retire_at = now + times.age * random.uniform(1 - _JITTER, 1 + _JITTER)  # noqa: S311 - nothing secret
        self._abort_at = math.inf
        self._idle_at = now + times.idle / _LOOKS
        self._quiet_since = now
        self._activity = 0
        self._activity_at_ping = 0

    def look(self, now: float) -> float:
        """Do what is due, and return when to look again; infinity where the connection is over."""
        if now >= min(self._handshake_by, self._abort_at):
            if now >= self._abort_at or not self._watched.begun():
                self._watched.abort()
                return math.inf
            self._handshake_by = math.inf
        if now >= self._pong_by:
            self._pong_by = max(self._pong_by, self._watched.heard + self._times.keepalive_timeout)
            if now >= self._pong_by:
                self._watched.fail("ping_timeout")
                return math.inf
        if now >= self._ping_at:
            self._keep_alive(now)
        if now >= self._retire_at:
            self._retire_at = math.inf
            self._abort_at = now + self._times.grace
            self._watched.retire("max_age")
        if now >= self._idle_at:
            self._look_for_calls(now)
        return min(self._handshake_by, self._ping_at, self._pong_by, self._retire_at, self._abort_at, self._idle_at)

    def _keep_alive(self, now: float) -> None:
        times, watched = self._times, self._watched
        silent_until = watched.heard + times.keepalive
        if now < silent_until:
            self._ping_at = silent_until
            return
        if self._pong_by < math.inf:  # a further ping would put off the end of who does not answer
            self._ping_at = self._pong_by
            return
        self._ping_at = now + times.keepalive
        if not (times.without_calls or watched.calls()):
            return
        activity = watched.activity()
        if activity != self._activity_at_ping:
            self._activity_at_ping, self._pings = activity, 0
        self._pings += 1
        if 0 < times.pings <= self._pings:
            self._ping_at = max(self._ping_at, now + _PAUSE_S)
        self._pong_by = now + times.keepalive_timeout
        watched.ping(self._answered)

    def _answered(self) -> None:
        self._pong_by = math.inf

    def _look_for_calls(self, now: float) -> None:
        """End a connection without calls. Calls take no note of the time, so that one which ended since the last look counts as one of now."""
        idle, activity = self._times.idle, self._watched.activity()
        if self._watched.calls() or activity != self._activity:
            self._activity, self._quiet_since = activity, now
        if now < self._quiet_since + idle:
            self._idle_at = min(now + idle / _LOOKS, self._quiet_since + idle)
        else:
            self._idle_at = math.inf
            self._watched.finish("connection idle")
