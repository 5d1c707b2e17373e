"""The interface between HTTP/2 and the protocols on top of it: calls, streams and receivers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Protocol

from tritonpy_http2.codes import ENHANCE_YOUR_CALM

Headers = Sequence[tuple[bytes, bytes]]
NO_TRAILERS = b"(no trailers)"
"""Trailers of a response that ends after its body; compared by identity."""
UNCOUNTED = 16 * 1024
"""Responses up to this size need no reservation: every open call has one of this size."""


class ClientReservation(Protocol):
    """Memory reserved for one purpose."""

    def grow(self, nbytes: int) -> bool:
        """Reserve `nbytes` in total; return False if the budget is exhausted."""

    def shrink(self, nbytes: int = 0) -> None:
        """Reduce the reservation to `nbytes`."""


class MemoryAccount(Protocol):
    """The memory budget of one client."""

    def reservation(self) -> ClientReservation:
        """Return an empty reservation."""


class UnlimitedReservation:
    """A reservation without a limit."""

    def grow(self, nbytes: int) -> bool:
        """Return True."""
        return True

    def shrink(self, nbytes: int = 0) -> None:
        """Do nothing."""


class Http2CallStream(ABC):
    """The server's side of one call. Used only on the event loop of the connection."""

    __slots__ = ()

    @abstractmethod
    def send(self, headers: bytes | None, data: Sequence[bytes], trailers: bytes | None) -> bool:
        """Send header block, body and trailer block, each optional; the blocks come from `encode`.

        The pieces of `data` are consecutive; large ones are not copied and must not be modified.
        Trailers complete the response; the receiver is not called again. Trailers alone are a
        response without body. `NO_TRAILERS` completes the response without a trailer block. Returns
        False if the client is too slow; `Receiver.resume` is called when everything is sent. After
        `Receiver.reset`, nothing is sent.
        """

    @property
    def account(self) -> MemoryAccount | None:
        """The memory budget of the client, if it is counted."""
        return None

    def extra_info(self, name: str, default: Any = None) -> Any:
        """Return extra information of the asyncio transport, such as `peername`."""
        return default

    def admits(self, count: int) -> bool:
        """Reserve memory for the next `count` bytes to send.

        Return False if the budget is exhausted.
        """
        return True

    @abstractmethod
    def reset(self, code: int) -> None:
        """End the call with an HTTP/2 error code. The receiver is not called again."""

    @abstractmethod
    def hold(self, count: int) -> None:
        """Shrink the window of the client by `count` received bytes until they are consumed."""

    @abstractmethod
    def consumed(self, count: int) -> None:
        """Extend the window of the client by `count` bytes that were held."""


class Receiver(ABC):
    """Receives the data of the client on one stream."""

    __slots__ = ()

    @abstractmethod
    def data(self, data: bytes | memoryview, ended: bool) -> None:
        """Process a part of the body; a memoryview is valid until the method returns.

        The window of the client is then extended by its size, unless `Http2CallStream.hold` was
        called.
        """

    def body_buffer(self) -> memoryview | None:
        """Return a buffer to read the next part of the body into without a copy, or None."""
        return None

    def body_buffer_updated(self, count: int, ended: bool) -> None:
        """Process `count` bytes of the body at the start of the buffer from `body_buffer`."""
        raise NotImplementedError

    @abstractmethod
    def reset(self) -> None:
        """End the call: the client cancelled it or disconnected."""

    def resume(self) -> None:
        """Resume sending after `send` returned False."""


class IgnoredBody(Receiver):
    """Ignores what the client sends on a stream that needs no more data."""

    __slots__ = ()

    def data(self, data: bytes | memoryview, ended: bool) -> None:
        """Drop the data."""

    def reset(self) -> None:
        """Do nothing."""


IGNORED_BODY = IgnoredBody()


class Http2Calls(ABC):
    """Starts calls."""

    @abstractmethod
    def begin(self, stream: Http2CallStream, headers: Headers, ended: bool) -> Receiver:
        """Start a call and return the receiver of its body; `ended` means no body.

        `headers` is a valid list with the pseudo-headers first. Equal lists are usually the same
        object, so results may be cached by identity while the list is kept alive. The response may
        be sent before this returns.
        """

    def overload(self, stream: Http2CallStream) -> None:
        """Refuse a call because the request memory is full."""
        stream.reset(ENHANCE_YOUR_CALM)

    @abstractmethod
    def refuse(self, stream: Http2CallStream, size: int, limit: int) -> None:
        """Refuse a call whose header list of `size` bytes exceeds `limit`, as counted by HTTP/2."""
