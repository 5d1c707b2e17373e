"""Keeps the workers of a model from crowding the processors."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Hashable

from tritonpy.clock import now_ns

_QUICK_NS = 250_000
"""What an execution may take on average for the others to wait for it: so long it costs no more than what carries it there and back."""
_PATIENCE_NS = 1_500_000
"""How long the others wait at most: some executions and their way there and back, on processors that others use too. What takes longer is no quick
one, whatever those before it were."""
_WEIGHT = 0.2  # of the newest execution in the running mean

Feed = Callable[[], None]


def room_for_workers() -> int:
    """Return how many workers can run beside the server, by the processors that it may use."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(available - 1, 1)


class Crowd:
    """The instances of one model that execute: no more than `most` at once, as long as executions are quick.

    One more would take its time from the others and from the server, and what waits meanwhile makes its batch larger: to be asked only where it
    does. Who is done and has more to do may go on, since that is cheapest; but nobody waits for long, whoever goes on: what an instance has to do may
    be for nobody else. Everything here runs on the loop's thread.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, most: int) -> None:
        self._loop = loop
        self._most = most
        self._begun_ns: dict[Hashable, int] = {}
        self._waiting_ns: dict[Feed, int] = {}  # since when, in that order
        self._mean_ns = float(_QUICK_NS)  # nobody waits before it is known that executions are quick
        self._asks = False
        self._looks = False

    def admits(self, feed: Feed) -> bool:
        """Say whether another instance may begin now. Where not, `feed` is called when it may ask again."""
        self._asks = True
        now = now_ns()
        since = self._waiting_ns.setdefault(feed, now)
        if self._mean_ns >= _QUICK_NS or now - since >= _PATIENCE_NS or self._has_room(now):
            del self._waiting_ns[feed]
            return True
        self._look_later()
        return False

    def began(self, instance: Hashable) -> None:
        """Take note that an instance executes."""
        self._begun_ns.setdefault(instance, now_ns())

    def took(self, ns: int) -> None:
        """Learn what an execution took."""
        self._mean_ns += _WEIGHT * (ns - self._mean_ns)

    def ended(self, instance: Hashable) -> None:
        """Take note that an instance executes no more."""
        if self._begun_ns.pop(instance, None) is not None and self._waiting_ns:
            self._loop.call_soon(self._fill)

    def _has_room(self, now: int) -> bool:
        if len(self._begun_ns) < self._most:
            return True
        return sum([begun > now - _PATIENCE_NS for begun in self._begun_ns.values()]) < self._most

    def _fill(self) -> None:
        """Let those who wait ask while there is room: who has nothing to do any more leaves it to the next."""
        for feed in list(self._waiting_ns):
            if self._has_room(now_ns()):
                self._ask(feed)

    def _ask(self, feed: Feed) -> None:
        self._asks = False
        try:
            feed()
        finally:
            if not self._asks:  # it is gone, or has something to do already
                self._waiting_ns.pop(feed, None)

    def _look_later(self) -> None:
        if not self._looks:
            self._looks = True
            self._loop.call_later(_PATIENCE_NS / 1e9, self._look)

    def _look(self) -> None:
        self._looks = False
        try:
            for feed in list(self._waiting_ns):
                self._ask(feed)
        finally:
            if self._waiting_ns:
                self._look_later()
