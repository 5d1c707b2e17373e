"""What the process that started Envoy and the server inside tell each other: frames of JSON over a socket pair."""

from __future__ import annotations

import socket
import struct
from typing import Any, TypeVar

import msgspec

from tritonpy import Failure

CONTROL = "TRITONPY_ENVOY_CONTROL"
"""The environment variable that names the descriptor of Envoy's end."""
_SIZE = struct.Struct("<I")
_Message = TypeVar("_Message")


class InterpreterState(msgspec.Struct, frozen=True):
    """What an embedded interpreter gets wrong; `environment` has the variables as they were, None for those that were not there."""

    environment: dict[str, str | None]
    executable: str
    base_executable: str
    prefix: str
    exec_prefix: str
    base_prefix: str
    base_exec_prefix: str
    path: list[str]
    argv: list[str]


class TlsWatch(msgspec.Struct, frozen=True):
    """Files that encrypt a port. When they change, something moved into `folder` makes Envoy read them again."""

    owner: str
    folder: str
    options: dict[str, Any]


class Handover(msgspec.Struct, frozen=True):
    """The first message, to the server: what it is, and what Envoy was given.

    `stderr` is the descriptor of our standard error, `admin` the path of Envoy's own socket, `loops` how many event loops it asks for.
    """

    document: str
    interpreter: InterpreterState
    stderr: int
    admin: str
    loops: int
    tls: list[TlsWatch]


class Asked(msgspec.Struct, frozen=True, tag="asked"):
    """To the server: a signal came."""

    signal: int


class Listening(msgspec.Struct, frozen=True, tag="listening"):
    """From the server: Envoy accepts connections."""


class Ended(msgspec.Struct, frozen=True, tag="ended"):
    """From the server: it is over, with this exit status; `failure` says why it could not start."""

    status: int
    failure: Failure | None


TOLD: Any = Ended | Listening
"""What the server says."""


class Wire:
    """One end. Each direction has one writer and one reader."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end

    def send(self, message: msgspec.Struct) -> None:
        """Send a message. Raises OSError where nobody is at the other end."""
        data = msgspec.json.encode(message)
        self._end.sendall(_SIZE.pack(len(data)) + data)

    def receive(self, kind: type[_Message]) -> _Message | None:
        """Return the next message, None where the other end is gone."""
        head = self._exactly(_SIZE.size)
        body = head and self._exactly(_SIZE.unpack(head)[0])
        return msgspec.json.decode(body, type=kind) if body else None

    def fileno(self) -> int:
        """Return the descriptor, to wait for it."""
        return self._end.fileno()

    def close(self) -> None:
        """Close this end."""
        self._end.close()

    def _exactly(self, size: int) -> bytes:
        parts = []
        while size:
            try:
                part = self._end.recv(size)
            except ConnectionError:
                part = b""
            if not part:
                return b""
            parts.append(part)
            size -= len(part)
        return b"".join(parts)
