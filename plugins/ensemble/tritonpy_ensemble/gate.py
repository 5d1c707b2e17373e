"""How many calls of one step may be open at a time: `max_inflight_requests`."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from tritonpy_ensemble.turns import Turns


class _Waiting(NamedTuple):
    whose: object
    start: Callable[[], None]


class Gate:
    """Lets at most `most` calls of a step pass, of all requests together; the others wait in the order in which they came. No thread waits."""

    def __init__(self, most: int) -> None:
        self._free = most
        self._waiting: deque[_Waiting] = deque()
        self._lock = threading.Lock()
        self._turns = Turns()

    def enter(self, whose: object, start: Callable[[], None]) -> bool:
        """Return True where there is room; where there is none, `start` is called once as soon as there is, from any thread.

        Whoever came in leaves once.
        """
        with self._lock:
            if self._free and not self._waiting:
                self._free -= 1
                return True
            self._waiting.append(_Waiting(whose, start))
            return False

    def leave(self) -> None:
        """Make room for another one."""
        with self._lock:
            self._free += 1
            if not self._waiting:
                return
        self._turns.take(self._let_in)

    def forget(self, whose: object) -> int:
        """Let nobody in any more who waits for `whose`; return how many that were."""
        with self._lock:
            before = len(self._waiting)
            self._waiting = deque(each for each in self._waiting if each.whose is not whose)
            return before - len(self._waiting)

    def _let_in(self) -> None:
        while True:
            with self._lock:
                if not self._free or not self._waiting:
                    return
                self._free -= 1
                start = self._waiting.popleft().start
            start()
