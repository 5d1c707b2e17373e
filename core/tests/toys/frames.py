"""The protocol of the toys between processes: length-prefixed MessagePack frames of plain values."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterable
from contextlib import suppress
from typing import TypeVar

import msgspec

from tritonpy_types import Tensor
from tritonpy_types.errors import TritonError, error_of

_LENGTH = struct.Struct("<I")
_Frame = TypeVar("_Frame")


class WireTensor(msgspec.Struct):
    """A tensor with its bytes."""

    name: str
    datatype: str
    shape: tuple[int, ...]
    data: bytes


class WireError(msgspec.Struct):
    """The parts of an error that a client sees."""

    code: int
    message: str


class Channel:
    """One end of a socket; any thread may send frames, one thread receives them."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._sending = threading.Lock()

    def send(self, frame: object) -> bool:
        """Send a frame; return False if the other end is closed."""
        data = msgspec.msgpack.encode(frame)
        with self._sending:
            try:
                self._connection.sendall(_LENGTH.pack(len(data)) + data)
            except OSError:
                return False
        return True

    def receive(self, kind: type[_Frame]) -> _Frame | None:
        """Return the next frame; None if the other end is closed."""
        head = self._read(_LENGTH.size)
        data = self._read(_LENGTH.unpack(head)[0]) if head else None
        return msgspec.msgpack.decode(data, type=kind) if data else None

    def close(self) -> None:
        """Close the connection, which ends `receive` at both ends."""
        with suppress(OSError):  # the other end was faster
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()

    def _read(self, size: int) -> bytes | None:
        parts: list[bytes] = []
        while size:
            try:
                part = self._connection.recv(size)
            except OSError:
                return None
            if not part:
                return None
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


def to_wire(tensors: Iterable[Tensor]) -> list[WireTensor]:
    """Return `tensors` with their bytes."""
    return [
        WireTensor(each.name, each.datatype, each.shape, each.data.tobytes()) for each in tensors
    ]


def from_wire(tensors: Iterable[WireTensor]) -> dict[str, Tensor]:
    """Return the tensors by name."""
    return {
        each.name: Tensor.from_buffer(each.name, each.datatype, each.shape, each.data)
        for each in tensors
    }


def error_to_wire(error: TritonError | None) -> WireError | None:
    """Return `error` as a plain value."""
    return None if error is None else WireError(int(error.code), error.message)


def error_from_wire(error: WireError | None) -> TritonError | None:
    """Return the error of a frame."""
    return None if error is None else error_of(error.code, error.message)
