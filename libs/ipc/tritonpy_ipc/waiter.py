"""An object on which a thread sleeps until another thread wakes it."""

from __future__ import annotations

from contextlib import suppress
from threading import Lock


class Waiter:
    """A wake-up for one thread; an early wake-up is kept, and several count as one."""

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = Lock()
        self._lock.acquire()

    def sleep(self, timeout_s: float = -1) -> None:
        """Sleep until woken, or for `timeout_s` seconds (-1: no limit)."""
        self._lock.acquire(timeout=timeout_s)

    def wake(self) -> None:
        """Wake the thread. Takes no lock: a destructor may call it, from any thread."""
        with suppress(RuntimeError):  # it is already awake
            self._lock.release()
