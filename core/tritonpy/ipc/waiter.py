"""What a thread sleeps on until another has something for it."""

from __future__ import annotations

from contextlib import suppress
from threading import Lock


class Waiter:
    """One thread's bed: a wake-up that comes before the sleep is not lost, and several count as one."""

    __slots__ = ("_asleep",)

    def __init__(self) -> None:
        self._asleep = Lock()
        self._asleep.acquire()

    def sleep(self, timeout_s: float = -1) -> None:
        """Wait to be woken, or for `timeout_s` seconds; -1: for ever."""
        self._asleep.acquire(timeout=timeout_s)

    def wake(self) -> None:
        """Takes no lock: a destructor may call it, from any thread."""
        with suppress(RuntimeError):  # it is awake
            self._asleep.release()
