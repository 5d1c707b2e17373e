"""The background thread that reads the socket while the main thread executes."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread

from tritonpy_ipc.channel import Channel
from tritonpy_ipc.waiter import Waiter

_GRACE_S = 0.005  # shorter executions need no background reader


class BackgroundReader:
    """Reads the channel during long executions, or while responses to calls are awaited.

    Between executions the main thread reads and this thread sleeps. Short executions wake it at
    most 200 times a second. `overdue()` is called when an execution turns out to be long.
    `awaited()` returns whether responses to calls are outstanding.
    """

    def __init__(
        self, channel: Channel, overdue: Callable[[], None], awaited: Callable[[], object]
    ) -> None:
        self._channel = channel
        self._overdue = overdue
        self._awaited = awaited
        self._waiter = Waiter()
        self._begun = 0  # number of executions begun
        self._busy = False
        self._asleep = False
        Thread(target=self._run, name="background reader", daemon=True).start()

    def begin(self) -> None:
        """Record that the main thread stops reading."""
        self._begun += 1
        self._busy = True
        if self._asleep or self._awaited():
            self._waiter.wake()

    def end(self) -> None:
        """Record that the main thread reads again."""
        self._busy = False

    def wake(self) -> None:
        """Wake the thread: responses are awaited, or shared memory was freed.

        Takes no lock: a destructor may call it.
        """
        self._waiter.wake()

    @property
    def busy(self) -> bool:
        """Whether the main thread executes."""
        return self._busy

    def _run(self) -> None:
        while True:
            begun = self._begun
            if not self._busy:
                self._sleep(begun)
                continue
            if not self._awaited():
                self._waiter.sleep(_GRACE_S)
            if self._busy and (self._awaited() or self._begun == begun):
                self._overdue()
                self._channel.wait(self._waiter, self._main_thread_reads)

    def _sleep(self, begun: int) -> None:
        self._channel.send_returns()
        self._asleep = True
        if not self._busy and self._begun == begun:
            self._waiter.sleep()
        self._asleep = False

    def _main_thread_reads(self) -> bool:
        return not self._busy
