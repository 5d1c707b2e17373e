"""How messages lie in a body: a flag that says whether one is compressed, four bytes of length, the message. Pure.

A frame may be spread over any number of chunks, and a chunk may hold any number of frames.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from tritonpy import InvalidArgument, ResourceExhausted

PREFIX = Struct(">BI")
LONGEST = 2**31 - 1
"""How many bytes of a message protobuf can carry; more is refused before it came."""


class Frame(NamedTuple):
    """One message as it came."""

    packed: int
    message: bytes


class Frames:
    """Cuts chunks into frames. The bytes of a message that is still on its way are joined once, however many chunks bring them."""

    __slots__ = ("_at", "_awaited", "_data", "_later", "_packed", "_unread", "limit")

    def __init__(self, limit: int = 0) -> None:
        self.limit = limit  # bytes of a message, 0 for any number
        self._data = b""
        self._at = 0
        self._later: list[bytes] = []
        self._unread = 0
        self._packed = 0
        self._awaited = -1  # the length of the message that comes next, -1 before its prefix was there

    @property
    def partial(self) -> bool:
        """Whether a part of a frame is there."""
        return self._unread > 0 or self._awaited >= 0

    @property
    def unread(self) -> int:
        """How many bytes came that were not taken out."""
        return self._unread

    def feed(self, chunk: bytes) -> None:
        """Take the next chunk of the body."""
        self._later.append(chunk)
        self._unread += len(chunk)

    def next(self) -> Frame | None:
        """Take out the next message, None if it is not whole yet. Raises TritonError where it is too long, or there is no memory for it."""
        if self._awaited < 0:
            if self._unread < PREFIX.size:
                return None
            self._packed, self._awaited = PREFIX.unpack(self._take(PREFIX.size))
            if self._awaited > LONGEST:
                raise InvalidArgument(f"a message of {self._awaited} bytes is announced, and {LONGEST} are the most")
            check_length(self._awaited, self.limit)
        if self._unread < self._awaited:
            return None
        try:
            message = self._take(self._awaited)
        except MemoryError:
            raise no_memory(self._awaited) from None
        self._awaited = -1
        return Frame(self._packed, message)

    def _take(self, count: int) -> bytes:
        if count == self._unread:
            return self._take_all()
        if len(self._data) - self._at < count:
            self._data = b"".join([self._data[self._at :], *self._later])
            self._later.clear()
            self._at = 0
        taken = self._data[self._at : self._at + count]
        self._at += count
        self._unread -= count
        if self._at == len(self._data):
            self._data, self._at = b"", 0
        return taken

    def _take_all(self) -> bytes:
        """Join what is left, and nothing else: a large message is copied once."""
        taken = b"".join([memoryview(self._data)[self._at :], *self._later])
        self._later.clear()
        self._data, self._at, self._unread = b"", 0, 0
        return taken


def check_length(length: int, limit: int) -> None:
    """Raise ResourceExhausted for a message that is longer than `limit`; 0 for any length."""
    if 0 < limit < length:
        raise ResourceExhausted(
            f"The message has {length} bytes, and the maximum is {limit} bytes. "
            "Use max_body_bytes under 'frontends: grpc:' to increase the limit; management calls other than a load take 1 MiB."
        )


def no_memory(length: int) -> ResourceExhausted:
    """Return how a call ends for whose message there is no memory."""
    return ResourceExhausted(f"there is no memory for a message of {length} bytes")


def prefix(message: bytes, packed: int = 0) -> bytes:
    """Return what goes ahead of a message. Raises struct.error beyond 4 GiB."""
    return PREFIX.pack(packed, len(message))
