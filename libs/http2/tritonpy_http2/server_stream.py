"""The state of one stream of a connection, and the check of the length of its body."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from tritonpy_http2.abuse_limits import AbuseBudget
from tritonpy_http2.calls import IGNORED_BODY, Http2CallStream, MemoryAccount, Receiver
from tritonpy_http2.codes import NO_ERROR
from tritonpy_http2.sender import Backlog, Sender


class StreamOwner(Protocol):
    """The interface of a connection for its streams."""

    account: MemoryAccount | None
    budget: AbuseBudget
    sender: Sender
    extra_info: Callable[[str, Any], Any]

    def reset(self, stream: ServerStream, code: int) -> None:
        """Reset a stream for a reason of the server."""

    def forget(self, stream: ServerStream) -> Receiver:
        """Remove a closed stream and return its receiver."""

    def extend_window(self, stream: ServerStream, count: int) -> None:
        """Release received bytes in the window of a stream."""


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

    def __init__(
        self, connection: StreamOwner, number: int, window: int, granted: int, ended: bool
    ) -> None:
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


class LengthCheckedReceiver(Receiver):
    """Passes a body of `length` bytes to `receiver`.

    Calls `refuse`, which ends the stream, on a mismatch.
    """

    __slots__ = ("_left", "_receiver", "_refuse")

    def __init__(self, receiver: Receiver, length: int, refuse: Callable[[], None]) -> None:
        self._receiver = receiver
        self._left = length
        self._refuse = refuse

    def data(self, data: bytes | memoryview, ended: bool) -> None:
        if self._fits(len(data), ended):
            self._receiver.data(data, ended)

    def body_buffer(self) -> memoryview | None:
        return self._receiver.body_buffer()

    def body_buffer_updated(self, count: int, ended: bool) -> None:
        if self._fits(count, ended):
            self._receiver.body_buffer_updated(count, ended)

    def reset(self) -> None:
        self._receiver.reset()

    def resume(self) -> None:
        self._receiver.resume()

    def _fits(self, count: int, ended: bool) -> bool:
        self._left -= count
        fits = not self._left if ended else self._left >= 0
        if not fits:
            self._refuse()
        return fits
