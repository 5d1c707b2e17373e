"""Keeps the workers of a model from crowding the processors."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Hashable

from tritonpy.clock import now_ns

_QUICK_NS = 250_000
"""What an execution may take on average for the others to wait for it: so long it costs no more than what carries it there and back."""
_PATIENCE_NS = 500_000
"""How long the others wait at most. An execution that takes longer is no quick one, whatever those before it were."""
_WEIGHT = 0.2  # of the newest execution in the running mean


def room_for_workers() -> int:
    """Return how many workers can run beside the server, by the processors that it may use."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(available - 1, 1)


class Crowd:
    """The instances of one model that execute: no more than `most` at once, as long as executions are quick.

    One more would take its time from the others and from the server, and what waits meanwhile makes its batch larger: to be asked only where it
    does. Everything here runs on the loop's thread.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, most: int) -> None:
        self._loop = loop
        self._most = most
        self._begun_ns: dict[Hashable, int] = {}
        self._waiting: dict[Callable[[], None], None] = {}  # in order
        self._mean_ns = float(_QUICK_NS)  # nobody waits before it is known that executions are quick
        self._looks = False

    def admits(self, feed: Callable[[], None]) -> bool:
        """Say whether another instance may begin now. Where not, `feed` is called when it may ask again."""
        if len(self._begun_ns) < self._most or self._mean_ns >= _QUICK_NS:
            return True
        young = now_ns() - _PATIENCE_NS
        if sum([begun > young for begun in self._begun_ns.values()]) < self._most:
            return True
        self._waiting[feed] = None
        if not self._looks:
            self._looks = True
            self._loop.call_later(_PATIENCE_NS / 1e9, self._look)
        return False

    def began(self, instance: Hashable) -> None:
        """Take note that an instance executes."""
        self._begun_ns.setdefault(instance, now_ns())

    def took(self, ns: int) -> None:
        """Learn what an execution took."""
        self._mean_ns += _WEIGHT * (ns - self._mean_ns)

    def ended(self, instance: Hashable) -> None:
        """Take note that an instance executes no more; who waited first may ask again."""
        if self._begun_ns.pop(instance, None) is not None and self._waiting:
            feed = next(iter(self._waiting))
            del self._waiting[feed]
            self._loop.call_soon(feed)

    def _look(self) -> None:
        self._looks = False
        waiting, self._waiting = self._waiting, {}
        for feed in waiting:
            feed()
