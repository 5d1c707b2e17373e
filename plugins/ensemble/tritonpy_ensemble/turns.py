"""One thing after the other, without a thread to do it and without anybody who waits."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable


class Turns:
    """Calls functions one at a time, in the order in which they came, in whichever thread comes first.

    What is asked for while a call is under way, by another thread or by that call itself, is done after it: a chain of calls that each
    ask for the next one does not grow the stack. The functions must not raise.
    """

    __slots__ = ("_due", "_lock")

    def __init__(self) -> None:
        self._due: deque[tuple[Callable[..., None], tuple[object, ...]]] = deque()
        self._lock = threading.Lock()

    def take(self, act: Callable[..., None], *arguments: object) -> None:
        """Call `act`, now or after those that were asked for before."""
        due, lock = self._due, self._lock
        due.append((act, arguments))
        # Whoever fails to get the lock leaves its call to the one that has it, which looks again after it let go.
        while due and lock.acquire(blocking=False):
            try:
                while due:
                    call, given = due.popleft()
                    call(*given)
            finally:
                lock.release()
