"""The state of one stream of a connection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tritonpy_frontend_h2.http2.calls import IGNORED_BODY, Http2CallStream, MemoryAccount, Receiver
from tritonpy_frontend_h2.http2.codes import NO_ERROR

if TYPE_CHECKING:
    from tritonpy_frontend_h2.http2.connection import ServerConnection
    from tritonpy_frontend_h2.http2.sender import Backlog


class ServerStream(Http2CallStream):
    """One stream of a connection, until both sides have ended it or one has reset it."""

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

    def __init__(self, connection: ServerConnection, number: int, window: int, granted: int, ended: bool) -> None:
        self._connection = connection
        self.number = number
        self.window = window  # bytes that the server may send
        self.granted = granted  # bytes that the client may send
        self.freed = 0  # bytes released since the last window update
        self.held = 0  # bytes that the receiver holds
        self.ended = ended  # the client has sent everything
        self.closed = False
        self.backlog: Backlog | None = None
        self.receiver: Receiver = IGNORED_BODY

    def send(self, headers: bytes | None, data: Sequence[bytes], trailers: bytes | None) -> bool:
        return self.closed or self._connection.sender.send(self, headers, data, trailers)

    @property
    def account(self) -> MemoryAccount | None:
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
            self._connection.extend_window(self, count)

    def detach_receiver(self) -> Receiver:
        """Remove and return the receiver, and so break the reference cycle with it."""
        receiver, self.receiver = self.receiver, IGNORED_BODY
        return receiver

    def response_sent(self) -> None:
        """Handle the end of the response."""
        self._connection.budget.refund()
        if self.ended:
            self._connection.forget(self)
        else:
            self._connection.reset(self, NO_ERROR)  # further data of the client is ignored
