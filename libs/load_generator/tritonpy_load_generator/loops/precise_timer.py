"""A timer with a precision of tens of microseconds; event loops wait in whole milliseconds."""

from __future__ import annotations

import asyncio
import ctypes
import os
import time
from collections.abc import Callable

_MONOTONIC = 1
_NONBLOCK = os.O_NONBLOCK
_ABSOLUTE = 1


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _Itimerspec(ctypes.Structure):
    _fields_ = (("interval", _Timespec), ("first", _Timespec))


class PreciseTimer:
    """Calls back at a time of the monotonic clock; it has at most one deadline.

    It uses timerfd on Linux and the event loop's timer on other systems.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._callback: Callable[[], None] | None = None
        self._library = ctypes.CDLL(None)
        self._file = -1
        self._handle: asyncio.TimerHandle | None = None
        if hasattr(self._library, "timerfd_create"):
            self._file = self._library.timerfd_create(_MONOTONIC, _NONBLOCK)
        if self._file >= 0:
            loop.add_reader(self._file, self._fired)

    def at(self, due_ns: int, callback: Callable[[], None]) -> None:
        """Call `callback` at `due_ns` (`time.monotonic_ns`); replaces an earlier deadline."""
        self._callback = callback
        if self._file < 0:
            if self._handle is not None:
                self._handle.cancel()
            self._handle = self._loop.call_later(
                max(due_ns - time.monotonic_ns(), 0) / 1e9, callback
            )
            return
        setting = _Itimerspec(first=_Timespec(*divmod(max(due_ns, 1), 1_000_000_000)))
        self._library.timerfd_settime(self._file, _ABSOLUTE, ctypes.byref(setting), None)

    def close(self) -> None:
        """Cancel the timer."""
        if self._handle is not None:
            self._handle.cancel()
        if self._file >= 0:
            self._loop.remove_reader(self._file)
            os.close(self._file)
            self._file = -1

    def _fired(self) -> None:
        try:
            os.read(self._file, 8)
        except BlockingIOError:  # the deadline was replaced
            return
        if self._callback is not None:
            self._callback()
