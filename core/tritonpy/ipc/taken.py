"""What was taken out of the stream of a call, said to the server in large steps."""

from __future__ import annotations

from .windows import MAX_ANSWERS, MAX_BYTES


class Taken:
    """Counts the answers of one call that its caller took; whoever makes them waits for that word while a window is used up.

    Half of a window is one word: a stream that is shorter costs none. One thread at a time may use it.
    """

    __slots__ = ("_answers", "_bytes")

    def __init__(self) -> None:
        self._answers = self._bytes = 0

    def add(self, nbytes: int) -> int:
        """Take note of one answer of that size; return how many the server is to hear of now, mostly 0."""
        self._answers += 1
        self._bytes += nbytes
        if 2 * self._answers < MAX_ANSWERS and 2 * self._bytes < MAX_BYTES:
            return 0
        told, self._answers, self._bytes = self._answers, 0, 0
        return told
