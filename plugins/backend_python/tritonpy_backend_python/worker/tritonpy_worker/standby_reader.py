"""A thread that reads the socket for threads that wait for responses without reading."""

from __future__ import annotations

from collections.abc import Sized
from threading import Lock, Thread

from .ipc.channel import Channel
from .ipc.waiter import Waiter

_TICK_S = 0.1


class StandbyReader:
    """Reads the channel while event loops wait (`awaited` is not empty) and no other thread reads.

    After `start(ticking=True)`, it also polls for queries of the server while the model computes.
    """

    def __init__(self, channel: Channel, awaited: Sized) -> None:
        self._channel = channel
        self._awaited = awaited
        self._waiter = Waiter()
        self._starting = Lock()
        self._started = False
        self._ticking = False

    def start(self, ticking: bool = False) -> None:
        """Start the thread if necessary."""
        with self._starting:
            self._ticking |= ticking
            if not self._started:
                self._started = True
                self._channel.set_standby(self._waiter, self._awaited.__len__)
                Thread(target=self._run, name="tritonpy-standby-reader", daemon=True).start()

    def _run(self) -> None:
        while True:
            self._waiter.sleep(_TICK_S if self._ticking else -1)
            if self._awaited:
                self._channel.read_until(self._may_leave)
                self._channel.wake_leader()
            else:
                self._channel.drain()

    def _may_leave(self) -> bool:
        return not self._awaited or self._channel.has_followers()
