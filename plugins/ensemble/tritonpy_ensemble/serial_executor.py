"""Serial execution of functions without a dedicated thread and without blocking."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable


class SerialExecutor:
    """Calls functions one at a time in submission order, in a thread that submits one.

    A function submitted during a call, by another thread or by the call itself, runs after it. So a
    chain of calls that submit the next one does not grow the stack. Functions must not raise.
    """

    __slots__ = ("_due", "_lock")

    def __init__(self) -> None:
        self._due: deque[tuple[Callable[..., None], tuple[object, ...]]] = deque()
        self._lock = threading.Lock()

    def execute(self, function: Callable[..., None], *arguments: object) -> None:
        """Call `function` now, or after earlier submissions."""
        due, lock = self._due, self._lock
        due.append((function, arguments))
        # A thread that does not get the lock leaves its call to the owner, which checks again after
        # releasing.
        while due and lock.acquire(blocking=False):
            try:
                while due:
                    call, arguments = due.popleft()
                    call(*arguments)
            finally:
                lock.release()
