"""A long message, which is read to where it will lie: no part of it is copied a second time."""

from __future__ import annotations

import ctypes
from io import BytesIO

from tritonpy_frontend_grpc.wire.frames import PREFIX, Frame, no_memory

SHORTEST = 256 * 1024
LONGEST = 256 * 1024 * 1024
"""Room for a longer one is not made on the word of a client alone."""
# Makes bytes that nobody wrote to yet: zeroes would take memory, and time, for what a client has only announced.
_bytes_of_size = ctypes.pythonapi["PyBytes_FromStringAndSize"]
_bytes_of_size.argtypes = (ctypes.c_void_p, ctypes.c_ssize_t)
_bytes_of_size.restype = ctypes.py_object


class LongMessage:
    """The bytes of one message as far as they came."""

    __slots__ = ("_at", "_buffer", "_given", "_packed", "_view")

    def __init__(self, start: bytes | memoryview) -> None:
        """`start` has at least the prefix of the message. Raises ResourceExhausted."""
        self._packed, length = PREFIX.unpack_from(start)
        try:
            self._buffer = BytesIO(_bytes_of_size(None, length))
        except MemoryError:
            raise no_memory(length) from None
        self._view = self._buffer.getbuffer()
        self._given: memoryview | None = None
        self._at = 0
        self.add(start[PREFIX.size :])

    @property
    def missing(self) -> int:
        """How many bytes have yet to come."""
        return len(self._view) - self._at

    @property
    def filled_bytes(self) -> int:
        """How many bytes came."""
        return self._at

    def add(self, part: bytes | memoryview) -> None:
        """Take the next bytes, not more than are missing."""
        self._view[self._at : self._at + len(part)] = part
        self._at += len(part)

    def room(self) -> memoryview:
        """Return where the missing bytes go; it may be used until the message is taken."""
        self._given = self._view[self._at :]
        return self._given

    def filled(self, count: int) -> None:
        """Take note that so many bytes lie there."""
        self._at += count

    def frame(self) -> Frame:
        """Return the message, once nothing is missing and nobody reads to its room any more: it would be copied for them."""
        if self._given is not None:
            self._given.release()
        self._view.release()
        return Frame(self._packed, self._buffer.getvalue())


def is_long(start: bytes | memoryview) -> bool:
    """Say whether the beginning of a body is that of a message for which room should be made: a part of it is still to come."""
    if len(start) < PREFIX.size:
        return False
    length = int.from_bytes(start[1 : PREFIX.size], "big")
    return SHORTEST <= length <= LONGEST and PREFIX.size + length > len(start)
