"""The dispatcher's view of an instance in a worker process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from tritonpy import InstanceContext
from tritonpy.execution import Slot, Wakeups


class WorkerSlot(Slot):
    """A slot whose `wake` calls `feed` on the event loop.

    A wake-up on the loop itself is deferred to the end of the iteration.
    """

    __slots__ = ("_feed", "_loop", "_wakeups")

    def __init__(
        self,
        context: InstanceContext,
        loop: asyncio.AbstractEventLoop,
        wakeups: Wakeups,
        feed: Callable[[], None],
    ) -> None:
        super().__init__(context)
        self._loop = loop
        self._wakeups = wakeups
        self._feed = feed

    def wake(self) -> None:
        if asyncio._get_running_loop() is self._loop and self._wakeups.loop is self._loop:
            self._wakeups.soon(self._feed)
        else:
            with suppress(RuntimeError):  # the loop is closed, and the instance is gone
                self._loop.call_soon_threadsafe(self._feed)
