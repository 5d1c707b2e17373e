"""Wake-ups of instances, coalesced per iteration of the event loop.

An event loop reads many sockets in one iteration. An instance that is woken by the first request
would compete with the loop for the interpreter. It would execute one or two requests while thirty
more are about to be read. Waking it at the end of the iteration gives larger batches, which need
less processor time per request.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from tritonpy.runners.loop_timers import LoopTimers


class Wakeups:
    """Calls functions at the end of the current loop iteration.

    Functions that are passed by other threads are called immediately.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._due: deque[Callable[[], None]] = deque()
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

    def detach(self) -> None:
        """Remove the event loop and call all pending functions."""
        self._loop = None
        if self._loop_timers is not None:
            loop_timers, self._loop_timers = self._loop_timers, None
            loop_timers.close()
        self._run_due()

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
