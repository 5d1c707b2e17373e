"""Assembly of header blocks from frames with padding, priority or continuations."""

from __future__ import annotations

from tritonpy_http2.codes import (
    END_HEADERS,
    END_STREAM,
    ENHANCE_YOUR_CALM,
    FRAME_SIZE_ERROR,
    PADDED,
    PROTOCOL_ERROR,
    WITH_PRIORITY,
)
from tritonpy_http2.errors import Http2ConnectionError

_PRIORITY_SIZE = 5


class HeaderBlockAssembler:
    """Assembles one header block at a time, of at most `longest` bytes."""

    __slots__ = ("_longest", "_parts", "_size", "ended")

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._parts: list[bytes] = []
        self._size = 0
        self.ended = False  # whether the stream ends with the block

    def begin(self, flags: int, payload: bytes) -> bytes | None:
        """Process HEADERS; return the block, or None if it continues.

        Raises Http2ConnectionError.
        """
        self.ended = flags & END_STREAM != 0
        at, end = 0, len(payload)
        if flags & PADDED:
            at, end = 1, end - (payload[0] if payload else 0)
        if flags & WITH_PRIORITY:
            at += _PRIORITY_SIZE
        if at > len(payload):
            raise Http2ConnectionError(FRAME_SIZE_ERROR, "HEADERS of an invalid length")
        if at > end:
            raise Http2ConnectionError(PROTOCOL_ERROR, "padding longer than the frame")
        self._parts.clear()
        self._size = 0
        return self.continue_block(flags, payload[at:end])

    def continue_block(self, flags: int, part: bytes) -> bytes | None:
        """Add a part; return the block, or None if it continues.

        Raises Http2ConnectionError if it is too long.
        """
        self._size += len(part)
        if self._size > self._longest:
            raise Http2ConnectionError(ENHANCE_YOUR_CALM, "a header block that is far too long")
        self._parts.append(part)
        if not flags & END_HEADERS:
            return None
        block = b"".join(self._parts)
        self._parts.clear()
        return block
