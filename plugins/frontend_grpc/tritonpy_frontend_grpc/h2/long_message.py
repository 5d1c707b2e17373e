"""A buffer for a long message, filled directly from the socket without a second copy."""

from __future__ import annotations

import ctypes
from io import BytesIO

from tritonpy_frontend_grpc.h2.message_frames import PREFIX, MessageFrame, no_memory

MIN_BYTES = 256 * 1024
MAX_BYTES = 256 * 1024 * 1024
"""Longer messages are not allocated before their data arrives."""
# Allocates uninitialized bytes: zeroing would touch the memory before the data arrives.
_bytes_of_size = ctypes.pythonapi["PyBytes_FromStringAndSize"]
_bytes_of_size.argtypes = (ctypes.c_void_p, ctypes.c_ssize_t)
_bytes_of_size.restype = ctypes.py_object


class LongMessage:
    """A partially received message."""

    __slots__ = ("_at", "_buffer", "_lent", "_packed", "_view")

    def __init__(self, start: bytes | memoryview) -> None:
        """Allocate the buffer; `start` contains at least the prefix. Raises ResourceExhausted."""
        self._packed, length = PREFIX.unpack_from(start)
        try:
            self._buffer = BytesIO(_bytes_of_size(None, length))
        except MemoryError:
            raise no_memory(length) from None
        self._view = self._buffer.getbuffer()
        self._lent: memoryview | None = None
        self._at = 0
        self.add(start[PREFIX.size :])

    @property
    def missing(self) -> int:
        """Number of missing bytes."""
        return len(self._view) - self._at

    @property
    def filled_bytes(self) -> int:
        """Number of received bytes."""
        return self._at

    def add(self, part: bytes | memoryview) -> None:
        """Add the next bytes, at most as many as are missing."""
        self._view[self._at : self._at + len(part)] = part
        self._at += len(part)

    def body_buffer(self) -> memoryview:
        """Return the buffer for the missing bytes, valid until `frame` is called."""
        self._lent = self._view[self._at :]
        return self._lent

    def body_buffer_updated(self, count: int) -> None:
        """Record that `count` bytes were read into the buffer."""
        self._at += count

    def frame(self) -> MessageFrame:
        """Return the complete message. No view of the buffer may exist: it would force a copy."""
        if self._lent is not None:
            self._lent.release()
        self._view.release()
        return MessageFrame(self._packed, self._buffer.getvalue())


def is_long(start: bytes | memoryview) -> bool:
    """Return whether a body starts with an incomplete message long enough for its own buffer."""
    if len(start) < PREFIX.size:
        return False
    length = int.from_bytes(start[1 : PREFIX.size], "big")
    return MIN_BYTES <= length <= MAX_BYTES and PREFIX.size + length > len(start)
