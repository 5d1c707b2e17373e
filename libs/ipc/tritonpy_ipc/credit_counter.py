"""Flow-control credit that the caller of a model returns to the server."""

from __future__ import annotations

from .windows import MAX_BYTES, MAX_RESPONSES


class CreditCounter:
    """Counts the responses of one call that its caller consumed.

    The producer of the responses blocks once it has used up its window. Credit is returned in steps
    of half a window, so a shorter stream needs no message. Only one thread at a time may use it.
    """

    __slots__ = ("_bytes", "_responses")

    def __init__(self) -> None:
        self._responses = self._bytes = 0

    def add(self, nbytes: int) -> int:
        """Add one consumed response of `nbytes`; return the credit to send now, mostly 0."""
        self._responses += 1
        self._bytes += nbytes
        if 2 * self._responses < MAX_RESPONSES and 2 * self._bytes < MAX_BYTES:
            return 0
        consumed, self._responses, self._bytes = self._responses, 0, 0
        return consumed
