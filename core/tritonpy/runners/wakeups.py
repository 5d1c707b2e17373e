"""Wake-ups of instances, coalesced per iteration of the event loop.

An event loop reads many sockets in one iteration. An instance that is woken by the first request
would compete with the loop for the interpreter. It would execute one or two requests while thirty
more are about to be read. Waking it at the end of the iteration gives larger batches, which need
less processor time per request.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import struct
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from heapq import heappop, heappush
from itertools import count

from tritonpy_types.clock import now_ns
from tritonpy_types.request import deliver_with

_ABSOLUTE = 1  # TFD_TIMER_ABSTIME
_NS = 1_000_000_000
# CDLL would release the interpreter for a call that takes less than a microsecond.
_LIBRARY = ctypes.PyDLL(None, use_errno=True)


_SETTING = struct.Struct("@llll")  # struct itimerspec: interval and time, in s and ns


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
        setting = _SETTING.pack(0, 0, seconds, rest)
        _LIBRARY.timerfd_settime(self._file, _ABSOLUTE, setting, None)


def _timer_file() -> int:
    try:
        make = _LIBRARY.timerfd_create
    except AttributeError:
        raise OSError("this system has no timer file descriptors") from None
    file = int(make(time.CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC))
    if file < 0:
        raise OSError(ctypes.get_errno(), "no timer")
    return file


class Wakeups:
    """Calls functions at the end of the current loop iteration.

    Functions that are passed by other threads are called immediately.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._due: deque[Callable[[], None]] = deque()
        self._next: deque[Callable[[], None]] = deque()
        self._running = False
        self._loop_timers: LoopTimers | None = None
        self._has_loop_timers = True  # false once the system has refused to create one

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The event loop of the frontends; None before the server starts and after it stops."""
        return self._loop

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Set the event loop of the frontends."""
        self._loop = loop
        deliver_with(loop, self.soon)

    def detach(self) -> None:
        """Remove the event loop and call all pending functions."""
        if self._loop is not None:
            deliver_with(self._loop, None)
        self._loop = None
        if self._loop_timers is not None:
            loop_timers, self._loop_timers = self._loop_timers, None
            loop_timers.close()
        self._run_due()
        self._run_next()

    def is_on_loop(self) -> bool:
        """Return whether the caller runs on the event loop."""
        # The identity of the thread is not enough: a loop that does not run has no iteration to
        # end.
        return self._loop is not None and asyncio._get_running_loop() is self._loop

    def soon(self, callback: Callable[[], None]) -> None:
        """Call `callback` now or at the end of the current iteration."""
        loop = self._loop
        if loop is None or asyncio._get_running_loop() is not loop:
            callback()
            return
        if not self._due and not self._running:
            loop.call_soon(self._run_due)
        self._due.append(callback)

    def in_next_iteration(self, callback: Callable[[], None]) -> bool:
        """Call `callback` after the loop has read its sockets again.

        Returns False if the caller does not run on the loop, which then never calls it.
        """
        loop = self._loop
        if loop is None or asyncio._get_running_loop() is not loop:
            return False
        if not self._next:
            loop.call_soon(self._run_next)
        self._next.append(callback)
        return True

    def _run_next(self) -> None:
        callbacks, self._next = self._next, deque()
        for callback in callbacks:
            self.soon(callback)

    def at(self, when_ns: int, callback: Callable[[], None]) -> bool:
        """Call `callback` on the loop at `when_ns`; return False if that is not possible.

        The caller must then use another timer.
        """
        loop = self._loop
        if loop is None or not self._has_loop_timers or asyncio._get_running_loop() is not loop:
            return False
        if self._loop_timers is None:
            try:
                self._loop_timers = LoopTimers(loop)
            except OSError:
                self._has_loop_timers = False
                return False
        self._loop_timers.at(when_ns, callback)
        return True

    def _run_due(self) -> None:
        self._running = True
        try:
            while self._due:  # a callback may add another for the same time
                self._due.popleft()()
        finally:
            self._running = False
            # If a callback raised, the others must still be called.
            if self._due and self._loop is not None:
                self._loop.call_soon(self._run_due)
