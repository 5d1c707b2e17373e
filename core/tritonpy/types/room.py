"""How much room a stream has for further answers."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable


class Room:
    """Counts the answers of one request that were put into its stream and not yet taken out.

    The room is used up at `max_answers` answers or `max_bytes` bytes, whichever comes first; an answer that is larger than all of it
    still goes in while there is any. Nothing is refused: it is the producer that waits. All methods may be called from any thread,
    never block, and call no callback under a lock.
    """

    __slots__ = ("_abandoned", "_bytes", "_lock", "_max_answers", "_max_bytes", "_sizes", "_waiting")

    def __init__(self, max_answers: int, max_bytes: int) -> None:
        self._max_answers = max_answers
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._sizes: deque[int] = deque()
        self._bytes = 0
        self._waiting: list[Callable[[], None]] = []
        self._abandoned = False

    @property
    def answers(self) -> int:
        """Answers that are in it."""
        return len(self._sizes)

    @property
    def nbytes(self) -> int:
        """Bytes that are in it."""
        return self._bytes

    @property
    def ready(self) -> bool:
        """Whether another answer has room. Nobody is kept from answering into a stream that was abandoned."""
        return (len(self._sizes) < self._max_answers and self._bytes < self._max_bytes) or self._abandoned

    @property
    def holds_back(self) -> bool:
        """Whether a producer has to wait: for room, or, where it waits already, until half of it is free."""
        return bool(self._waiting) or not self.ready

    def put(self, nbytes: int) -> None:
        """Take note of an answer of that size that goes in."""
        with self._lock:
            self._sizes.append(nbytes)
            self._bytes += nbytes

    def take(self) -> None:
        """Take note that the oldest answer has left. Raises IndexError where there is none."""
        with self._lock:
            self._bytes -= self._sizes.popleft()
            called = self._take_waiting() if self._waiting and self._half_empty() else ()
        for callback in called:
            callback()

    def when_ready(self, callback: Callable[[], None]) -> None:
        """Call `callback` once: now if there is room, else when half of it is free again, or at `release` or `abandon`.

        Half, so that a producer that is faster than its consumer is not woken for every single answer.
        """
        with self._lock:
            if not self.ready:
                self._waiting.append(callback)
                return
        callback()

    def release(self) -> None:
        """Call whoever waits, room or not: its request was cancelled, which it should see."""
        with self._lock:
            called = self._take_waiting()
        for callback in called:
            callback()

    def abandon(self) -> None:
        """From now on nobody takes anything out, and nobody has to wait."""
        self._abandoned = True
        self.release()

    def _half_empty(self) -> bool:
        return 2 * len(self._sizes) <= self._max_answers and 2 * self._bytes <= self._max_bytes

    def _take_waiting(self) -> list[Callable[[], None]]:
        waiting, self._waiting = self._waiting, []
        return waiting
