"""The seam between HTTP/2 and what is carried by it: calls that arrive on streams, and the streams that their answers leave on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Protocol

from tritonpy_frontend_h2.http2.codes import ENHANCE_YOUR_CALM

Headers = Sequence[tuple[bytes, bytes]]
NO_TRAILERS = b"(no trailers)"
"""Ends a response after its body, compared by identity."""
UNCOUNTED = 16 * 1024
"""Up to this size an answer may wait for the client without a reservation: each open call has one of that size."""


class Reservation(Protocol):
    """Memory that is reserved for one purpose."""

    def grow(self, nbytes: int) -> bool:
        """Reserve `nbytes` in all; return False where there is no room."""

    def shrink(self, nbytes: int = 0) -> None:
        """Keep `nbytes`."""


class Account(Protocol):
    """The memory of one client."""

    def reservation(self) -> Reservation:
        """Return an empty reservation."""


class NoLimit:
    """A reservation that has room for everything."""

    def grow(self, nbytes: int) -> bool:
        """Say that there is room."""
        return True

    def shrink(self, nbytes: int = 0) -> None:
        """Do nothing."""


class Stream(ABC):
    """One call as its answerer sees it. Only the event loop that runs the connection may use it."""

    __slots__ = ()

    @abstractmethod
    def send(self, headers: bytes | None, data: Sequence[bytes], trailers: bytes | None) -> bool:
        """Send header block, body and trailer block, each of them or none; the blocks come from `encode`.

        `NO_TRAILERS` end the answer without a trailer block.
        The pieces of `data` are one run of the body; large ones are neither joined nor copied, so nobody may change them. With trailers the
        answer is complete, and the receiver hears nothing more; trailers alone are an answer without body. False: the client is slower than this, and
        `Receiver.resume` tells when all of it is on its way. After the receiver was told `reset`, nothing is sent.
        """

    @property
    def account(self) -> Account | None:
        """The memory of the client, where it is counted."""
        return None

    def extra_info(self, name: str, default: Any = None) -> Any:
        """Return what asyncio's transports know of the connection, such as `peername`."""
        return default

    def admits(self, count: int) -> bool:
        """Reserve memory for `count` bytes that are sent next and may have to wait for the client; False if there is none."""
        return True

    @abstractmethod
    def reset(self, code: int) -> None:
        """End the call with an error code of HTTP/2; the receiver hears nothing more."""

    @abstractmethod
    def hold(self, count: int) -> None:
        """Keep `count` bytes of the body that `Receiver.data` brought: the client may send that much less until they are consumed."""

    @abstractmethod
    def consumed(self, count: int) -> None:
        """Let the client send `count` bytes more, in place of some that were held."""


class Receiver(ABC):
    """Takes what the client sends on one stream."""

    __slots__ = ()

    @abstractmethod
    def data(self, data: bytes | memoryview, ended: bool) -> None:
        """Take a part of the body; a memoryview is valid until the method returns. The client may send as much again unless it is held."""

    def room(self) -> memoryview | None:
        """Return where the body that comes next may be read to without a copy, or None. What was read is told by `filled`, at most to its end."""
        return None

    def filled(self, count: int, ended: bool) -> None:
        """Take note that `count` bytes of the body lie at the beginning of what `room` returned last."""
        raise NotImplementedError

    @abstractmethod
    def reset(self) -> None:
        """Give up: the client cancelled the call or is gone."""

    def resume(self) -> None:
        """Go on sending, after `send` returned False."""


class Calls(ABC):
    """Begins calls."""

    @abstractmethod
    def begin(self, stream: Stream, headers: Headers, ended: bool) -> Receiver:
        """Take a call whose header list is valid HTTP/2, pseudo-headers first; `ended` says that it has no body.

        Equal lists are mostly the same object, so what follows from one may be kept by its identity as long as the list is kept too.
        The answer may be sent at once.
        """

    def overload(self, stream: Stream) -> None:
        """Answer at once a call for which there is no memory."""
        stream.reset(ENHANCE_YOUR_CALM)

    @abstractmethod
    def refuse(self, stream: Stream, size: int, limit: int) -> None:
        """Answer at once a call whose header list has `size` bytes, as HTTP/2 counts them, where `limit` are allowed."""
