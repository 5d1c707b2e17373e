"""The thread that reads the socket when those who wait for an answer cannot."""

from __future__ import annotations

from collections.abc import Sized
from threading import Lock, Thread

from .ipc.channel import Channel
from .ipc.waiter import Waiter

_TICK_S = 0.1


class Substitute:
    """Leads the channel while `awaited` is not empty and no other thread does: an event loop waits for answers without reading.

    Ticking, it also looks for questions of the server that come while the model computes.
    """

    def __init__(self, channel: Channel, awaited: Sized) -> None:
        self._channel = channel
        self._awaited = awaited
        self._waiter = Waiter()
        self._starting = Lock()
        self._started = False
        self._ticking = False

    def start(self, ticking: bool = False) -> None:
        """Be there from now on."""
        with self._starting:
            self._ticking |= ticking
            if not self._started:
                self._started = True
                self._channel.set_substitute(self._waiter, self._awaited.__len__)
                Thread(target=self._run, name="tritonpy-substitute", daemon=True).start()

    def _run(self) -> None:
        while True:
            self._waiter.sleep(_TICK_S if self._ticking else -1)
            if self._awaited:
                self._channel.lead(self._may_leave)
                self._channel.call_leader()
            else:
                self._channel.drain()

    def _may_leave(self) -> bool:
        return not self._awaited or self._channel.has_followers()
