"""Rings the bells of instances once per turn of the event loop, not once per request.

An event loop reads many sockets in one turn. Rung by the first request, an instance would fight the loop for the interpreter and run a batch
of one or two while thirty more are about to be read: 32 in flight ran in batches of 2.7 and cost 149 us of CPU per
request; rung at the end of the turn, in batches of 5.5 and 89 us.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from tritonpy.runners.alarms import Alarms


class Rings:
    """Calls functions at the end of the loop's present turn when asked from within it, at once when asked from anywhere else."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._due: deque[Callable[[], None]] = deque()
        self._ringing = False
        self._alarms: Alarms | None = None
        self._has_alarms = True  # until the system says otherwise

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The loop that runs the frontends; None before the server starts and after it stopped."""
        return self._loop

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Take the loop that runs the frontends."""
        self._loop = loop

    def detach(self) -> None:
        """Forget the loop; what is due is rung now."""
        self._loop = None
        if self._alarms is not None:
            alarms, self._alarms = self._alarms, None
            alarms.close()
        self._ring()

    def in_turn(self) -> bool:
        """Say whether the caller is called by the loop."""
        # Not the thread's identity: a loop that does not run at the moment has no turn that could end.
        return self._loop is not None and asyncio._get_running_loop() is self._loop

    def soon(self, ring: Callable[[], None]) -> None:
        """Call `ring`, now or at the end of the turn."""
        loop = self._loop
        if loop is None or asyncio._get_running_loop() is not loop:
            ring()
            return
        if not self._due and not self._ringing:
            loop.call_soon(self._ring)
        self._due.append(ring)

    def at(self, when_ns: int, ring: Callable[[], None]) -> bool:
        """Call `ring` on the loop at `when_ns` of the server's clock, or return False: then somebody else has to."""
        loop = self._loop
        if loop is None or not self._has_alarms or asyncio._get_running_loop() is not loop:
            return False
        if self._alarms is None:
            try:
                self._alarms = Alarms(loop)
            except OSError:
                self._has_alarms = False
                return False
        self._alarms.at(when_ns, ring)
        return True

    def _ring(self) -> None:
        self._ringing = True
        try:
            while self._due:  # a ring may bring about another, for the same moment
                self._due.popleft()()
        finally:
            self._ringing = False
            if self._due and self._loop is not None:  # one raised: that must not silence the others
                self._loop.call_soon(self._ring)
