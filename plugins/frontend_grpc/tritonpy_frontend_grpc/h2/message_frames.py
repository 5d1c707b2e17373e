"""Framing of gRPC messages: a compression flag, four bytes of length, and the message.

A frame may span several chunks of the body, and a chunk may contain several frames.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from tritonpy import InvalidArgument, ResourceExhausted

PREFIX = Struct(">BI")
MAX_MESSAGE_BYTES = 2**31 - 1
"""Largest message in bytes that protobuf supports; larger ones are refused by their length."""


class MessageFrame(NamedTuple):
    """One received message; `compressed` is its compression flag."""

    compressed: int
    message: bytes


class MessageReader:
    """Splits chunks into frames.

    The parts of a message are joined once, after the last one arrives.
    """

    __slots__ = ("_at", "_chunks", "_data", "_length", "_packed", "_unread", "limit")

    def __init__(self, limit: int = 0) -> None:
        self.limit = limit  # bytes of a message, 0 for no limit
        self._data = b""
        self._at = 0
        self._chunks: list[bytes] = []
        self._unread = 0
        self._packed = 0
        self._length = -1  # length of the next message, -1 before its prefix

    @property
    def partial(self) -> bool:
        """Whether a frame is partially received."""
        return self._unread > 0 or self._length >= 0

    @property
    def unread(self) -> int:
        """Number of received bytes that were not returned."""
        return self._unread

    def feed(self, chunk: bytes) -> None:
        """Add a chunk of the body."""
        self._chunks.append(chunk)
        self._unread += len(chunk)

    def next(self) -> MessageFrame | None:
        """Return the next message, or None if it is incomplete.

        Raises TritonError if it is too long or there is no memory for it.
        """
        if self._length < 0:
            if self._unread < PREFIX.size:
                return None
            self._packed, self._length = PREFIX.unpack(self._take(PREFIX.size))
            if self._length > MAX_MESSAGE_BYTES:
                raise InvalidArgument(
                    f"a message of {self._length} bytes was announced, and the maximum is "
                    f"{MAX_MESSAGE_BYTES} bytes"
                )
            check_length(self._length, self.limit)
        if self._unread < self._length:
            return None
        try:
            message = self._take(self._length)
        except MemoryError:
            raise no_memory(self._length) from None
        self._length = -1
        return MessageFrame(self._packed, message)

    def _take(self, count: int) -> bytes:
        if count == self._unread:
            return self._take_all()
        if len(self._data) - self._at < count:
            self._data = b"".join([self._data[self._at :], *self._chunks])
            self._chunks.clear()
            self._at = 0
        taken = self._data[self._at : self._at + count]
        self._at += count
        self._unread -= count
        if self._at == len(self._data):
            self._data, self._at = b"", 0
        return taken

    def _take_all(self) -> bytes:
        """Join all remaining bytes, so that a large message is copied once."""
        taken = b"".join([memoryview(self._data)[self._at :], *self._chunks])
        self._chunks.clear()
        self._data, self._at, self._unread = b"", 0, 0
        return taken


def check_length(length: int, limit: int) -> None:
    """Raise ResourceExhausted if `length` exceeds `limit`; 0 means no limit."""
    if 0 < limit < length:
        raise ResourceExhausted(
            f"The message has {length} bytes, and the maximum is {limit} bytes. "
            "Use max_body_bytes under 'frontends: grpc:' to increase the limit; "
            "management calls other than a load accept 1 MiB."
        )


def no_memory(length: int) -> ResourceExhausted:
    """Return the error of a call whose message does not fit into memory."""
    return ResourceExhausted(f"there is no memory for a message of {length} bytes")


def prefix(message: bytes, compressed: int = 0) -> bytes:
    """Return the prefix of a message. Raises struct.error beyond 4 GiB."""
    return PREFIX.pack(compressed, len(message))
