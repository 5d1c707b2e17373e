"""A stream as the server keeps it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tritonpy_frontend_h2.http2.calls import Account, Receiver, Stream
from tritonpy_frontend_h2.http2.codes import NO_ERROR

if TYPE_CHECKING:
    from tritonpy_frontend_h2.http2.connection import Connection
    from tritonpy_frontend_h2.http2.sender import Backlog


class _Nobody(Receiver):
    """Receives what nobody waits for."""

    __slots__ = ()

    def data(self, data: bytes | memoryview, ended: bool) -> None:
        """Drop it."""

    def reset(self) -> None:
        """Do nothing."""


_NOBODY = _Nobody()


class ServerStream(Stream):
    """One stream of a connection, until both ends said all or one of them gave up."""

    __slots__ = (
        "__weakref__",
        "_connection",
        "backlog",
        "closed",
        "ended",
        "freed",
        "granted",
        "held",
        "number",
        "receiver",
        "window",
    )

    def __init__(self, connection: Connection, number: int, window: int, granted: int, ended: bool) -> None:
        self._connection = connection
        self.number = number
        self.window = window  # what we may send
        self.granted = granted  # what the client may send
        self.freed = 0  # what it may send more, which it was not told yet
        self.held = 0  # what it may not, since the receiver keeps as much
        self.ended = ended  # the client said all
        self.closed = False
        self.backlog: Backlog | None = None
        self.receiver: Receiver = _NOBODY

    def send(self, headers: bytes | None, data: Sequence[bytes], trailers: bytes | None) -> bool:
        return self.closed or self._connection.sender.send(self, headers, data, trailers)

    @property
    def account(self) -> Account | None:
        return self._connection.account

    def extra_info(self, name: str, default: Any = None) -> Any:
        return self._connection.extra_info(name, default)

    def admits(self, count: int) -> bool:
        return self.closed or self._connection.sender.admits(count)

    def reset(self, code: int) -> None:
        if not self.closed:
            self._connection.reset(self, code)

    def hold(self, count: int) -> None:
        if not self.closed:
            self.held += count
            self.freed -= count

    def consumed(self, count: int) -> None:
        count = min(count, self.held)
        if count:
            self.held -= count
            self._connection.widen(self, count)

    def part(self) -> Receiver:
        """Let go of the receiver, and return it: the two name each other, and what they hold would wait for the collector."""
        receiver, self.receiver = self.receiver, _NOBODY
        return receiver

    def answered(self) -> None:
        """Take note that the answer is complete."""
        self._connection.patience.earn()
        if self.ended:
            self._connection.forget(self)
        else:
            self._connection.reset(self, NO_ERROR)  # what it still sends is of no use
