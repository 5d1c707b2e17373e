"""Header blocks that are not one plain frame: padded, with a priority, or spread over several."""

from __future__ import annotations

from tritonpy_frontend_h2.http2.codes import (
    END_HEADERS,
    END_STREAM,
    ENHANCE_YOUR_CALM,
    FRAME_SIZE_ERROR,
    PADDED,
    PROTOCOL_ERROR,
    WITH_PRIORITY,
)
from tritonpy_frontend_h2.http2.faults import ConnectionFault

_PRIORITY_SIZE = 5


class HeaderFrames:
    """Puts one block at a time together, of at most `longest` bytes."""

    __slots__ = ("_longest", "_parts", "_size", "ended")

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._parts: list[bytes] = []
        self._size = 0
        self.ended = False  # whether the stream ends with the block

    def begin(self, flags: int, payload: bytes) -> bytes | None:
        """Take a HEADERS frame, and return the block, None where it goes on. Raises ConnectionFault."""
        self.ended = flags & END_STREAM != 0
        at, end = 0, len(payload)
        if flags & PADDED:
            at, end = 1, end - (payload[0] if payload else 0)
        if flags & WITH_PRIORITY:
            at += _PRIORITY_SIZE
        if at > len(payload):
            raise ConnectionFault(FRAME_SIZE_ERROR, "a header frame that is too short")
        if at > end:
            raise ConnectionFault(PROTOCOL_ERROR, "more padding than frame")
        self._parts.clear()
        self._size = 0
        return self.go_on(flags, payload[at:end])

    def go_on(self, flags: int, part: bytes) -> bytes | None:
        """Take the next part, and return the block, None where it goes on. Raises ConnectionFault where it is too long."""
        self._size += len(part)
        if self._size > self._longest:
            raise ConnectionFault(ENHANCE_YOUR_CALM, "a header block that is far too long")
        self._parts.append(part)
        if not flags & END_HEADERS:
            return None
        block = b"".join(self._parts)
        self._parts.clear()
        return block
