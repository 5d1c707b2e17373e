"""Looks after requests that take their time: once a body is complete, pyvoy tells of a client's leaving only those who ask."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Protocol

from tritonpy_frontend_envoy.embedded.loops import call_on

PERIOD_S = 0.1
# A look costs two changes of threads: this many a round keep what waits for long from costing more than what runs.
MOST_LOOKS = 200


class Watched(Protocol):
    """A request that wants to be looked at."""

    def look(self) -> None:
        """Ask whether the client is still there."""


class Expected(Watched, Protocol):
    """One of whom nobody on the event loop has heard yet; `watched` is set by whoever makes the patrol look at it."""

    watched: bool


class Patrol:
    """Calls `look` of whatever is watched for longer than a round, now and then, on the event loop; costs nothing while nothing is."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._young: set[Watched] = set()
        self._old: dict[Watched, None] = {}
        self._expected: deque[Expected] = deque()
        self._walking = False
        self._called = False  # by another thread, and not on the way yet

    def watch(self, watched: Watched) -> None:
        """Look at it from now on."""
        self._young.add(watched)
        if not self._walking:
            self._set_out()

    def expect(self, expected: Expected) -> None:
        """Look at it, if it is not watched in the next round. May be called from any thread, and wakes the event loop about once per round."""
        self._expected.append(expected)
        if not self._walking and not self._called:
            self._called = True
            call_on(self._loop, self._set_out)

    def forget(self, watched: Watched) -> None:
        """Look at it no more."""
        if watched in self._young:
            self._young.remove(watched)
        else:
            self._old.pop(watched, None)

    def _set_out(self) -> None:
        self._called = False  # whoever relied on it was expected before, and the walk that follows takes them in
        if not self._walking:
            self._walking = True
            self._loop.call_later(PERIOD_S, self._walk)

    def _walk(self) -> None:
        old = self._old
        due = [each for each, _ in zip(old, range(MOST_LOOKS), strict=False)]
        self._walking = False  # first: who is expected from now on makes us set out again
        self._take_expected()
        old.update(dict.fromkeys(self._young))
        self._young.clear()
        if old:
            self._set_out()  # before the looks: one that fails ends its own round alone
        for watched in due:
            if watched in old:
                del old[watched]
                old[watched] = None  # behind those whose turn comes sooner
                watched.look()

    def _take_expected(self) -> None:
        expected = self._expected
        while expected:
            each = expected.popleft()
            if not each.watched:
                each.watched = True
                self._young.add(each)
