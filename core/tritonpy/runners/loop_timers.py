"""Timers on the event loop that are finer than the milliseconds of the loop itself."""

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
# CDLL would release the interpreter for a call that takes less than a microsecond.
_LIBRARY = ctypes.PyDLL(None, use_errno=True)


class _Setting(ctypes.Structure):
    """struct itimerspec."""

    _fields_ = (
        ("every_s", ctypes.c_long),
        ("every_ns", ctypes.c_long),
        ("at_s", ctypes.c_long),
        ("at_ns", ctypes.c_long),
    )


class LoopTimers:
    """Calls functions at given times of the server's clock, on the thread of an event loop.

    No other thread has to wake up first. All methods run on the thread of the loop. Raises
    `OSError` if the system has no timer that an event loop can watch.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._due: list[tuple[int, int, Callable[[], None]]] = []
        self._order = count()
        self._file = _timer_file()
        loop.add_reader(self._file, self._fire)

    def at(self, when_ns: int, callback: Callable[[], None]) -> None:
        """Call `callback` once, at or soon after `when_ns`."""
        heappush(self._due, (when_ns, next(self._order), callback))
        if self._due[0][2] is callback:
            self._arm()

    def close(self) -> None:
        """Call all pending functions now, because the timer will not fire any more."""
        self._loop.remove_reader(self._file)
        os.close(self._file)
        while self._due:
            heappop(self._due)[2]()

    def _fire(self) -> None:
        with suppress(BlockingIOError):  # the timer was set again in the meantime
            os.read(self._file, 8)
        try:
            while self._due and self._due[0][0] <= now_ns():
                heappop(self._due)[2]()
        finally:  # if a callback raised, the others must still be called
            if self._due:
                self._arm()

    def _arm(self) -> None:
        seconds, rest = divmod(max(self._due[0][0], 1), _NS)  # 0 would disarm the timer
        setting = _Setting(0, 0, seconds, rest)
        _LIBRARY.timerfd_settime(self._file, _ABSOLUTE, ctypes.byref(setting), None)


def _timer_file() -> int:
    try:
        make = _LIBRARY.timerfd_create
    except AttributeError:
        raise OSError("this system has no timer file descriptors") from None
    file = int(make(time.CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC))
    if file < 0:
        raise OSError(ctypes.get_errno(), "no timer")
    return file
