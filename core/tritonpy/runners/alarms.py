"""Times on the event loop that are finer than the loop's own, which counts in milliseconds."""

from __future__ import annotations

import asyncio
import ctypes
import os
import time
from collections.abc import Callable
from contextlib import suppress
from heapq import heappop, heappush
from itertools import count

from tritonpy.clock import now_ns

_ABSOLUTE = 1  # TFD_TIMER_ABSTIME
_NS = 1_000_000_000
# Not CDLL: that would hand the interpreter to another thread for a call that takes less than a microsecond.
_LIBRARY = ctypes.PyDLL(None, use_errno=True)


class _Setting(ctypes.Structure):
    """C's itimerspec."""

    _fields_ = (
        ("every_s", ctypes.c_long),
        ("every_ns", ctypes.c_long),
        ("at_s", ctypes.c_long),
        ("at_ns", ctypes.c_long),
    )


class Alarms:
    """Calls functions at times of the server's clock, on the thread of a loop: no other thread has to wake up for it, and then wake the loop.

    Everything here runs on that thread. Raises OSError where the system has no timers that a loop can watch.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._due: list[tuple[int, int, Callable[[], None]]] = []
        self._order = count()
        self._file = _timer_file()
        loop.add_reader(self._file, self._ring)

    def at(self, when_ns: int, callback: Callable[[], None]) -> None:
        """Call `callback` once, at or soon after `when_ns`."""
        heappush(self._due, (when_ns, next(self._order), callback))
        if self._due[0][2] is callback:
            self._set()

    def close(self) -> None:
        """Call what is not due yet: nobody will later."""
        self._loop.remove_reader(self._file)
        os.close(self._file)
        while self._due:
            heappop(self._due)[2]()

    def _ring(self) -> None:
        with suppress(BlockingIOError):  # it was set anew meanwhile
            os.read(self._file, 8)
        try:
            while self._due and self._due[0][0] <= now_ns():
                heappop(self._due)[2]()
        finally:  # one raised: that must not silence the others
            if self._due:
                self._set()

    def _set(self) -> None:
        seconds, rest = divmod(max(self._due[0][0], 1), _NS)  # 0 would be never
        setting = _Setting(0, 0, seconds, rest)
        _LIBRARY.timerfd_settime(self._file, _ABSOLUTE, ctypes.byref(setting), None)


def _timer_file() -> int:
    try:
        make = _LIBRARY.timerfd_create
    except AttributeError:
        raise OSError("this system has no timers that are files") from None
    file = int(make(time.CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC))
    if file < 0:
        raise OSError(ctypes.get_errno(), "no timer")
    return file
