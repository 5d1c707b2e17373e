"""The dispatcher's view of an instance that is a process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from tritonpy.api.backend import InstanceContext
from tritonpy.runners.rings import Rings
from tritonpy.runners.slot import Slot


class WorkerSlot(Slot):
    """Rung, it has `feed` called on the event loop: at the end of the present turn, when the ring comes from the loop itself."""

    __slots__ = ("_feed", "_loop", "_rings")

    def __init__(
        self, context: InstanceContext, loop: asyncio.AbstractEventLoop, rings: Rings, feed: Callable[[], None]
    ) -> None:
        super().__init__(context)
        self._loop = loop
        self._rings = rings
        self._feed = feed

    def ring(self) -> None:
        if asyncio._get_running_loop() is self._loop and self._rings.loop is self._loop:
            self._rings.soon(self._feed)
        else:
            with suppress(RuntimeError):  # the loop is closed: nobody is left to be fed
                self._loop.call_soon_threadsafe(self._feed)
