"""One gRPC call, as the service sees it, whatever carries it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tritonpy import ClientMemory, InferRequest, InferResponse, Reservation, TritonError

Metadata = Iterable[tuple[str, Any]]
"""Keys in lower case with texts, or with bytes where the key ends with `-bin`; what belongs to gRPC itself is not in it."""


class Call(ABC):
    """A call that a client makes. All methods are called on the event loop."""

    __slots__ = ()

    @abstractmethod
    def metadata(self) -> Metadata:
        """Return what the client sent ahead of its messages."""

    @abstractmethod
    def deadline_ns(self) -> int:
        """Return when the client stops waiting, in ns on the server's clock; 0 for never."""

    @abstractmethod
    def when_done(self, callback: Callable[[], None]) -> None:
        """Call `callback` once when the call is over: its answer was sent, or nobody waits for it any more."""


class _Accounted(Call):
    """A call whose client has an account of memory."""

    __slots__ = ()

    def account(self) -> ClientMemory | None:
        """Return the memory of the client, None where a transport does not tell calls of one client apart."""
        return None


class InferCall(_Accounted):
    """A call of ModelInfer, which is answered without a task of its own; that it is over, and its request, are the service's to say."""

    __slots__ = ("answers", "first", "memory", "over", "request")

    def __init__(self) -> None:
        self.over = False
        self.answers = 0  # before the final one
        self.first: InferResponse | None = None
        self.request: InferRequest | None = None
        self.memory: Reservation | None = None  # for its message, as long as anything refers to the call

    @abstractmethod
    def finish(self, answer: bytes | TritonError) -> None:
        """Send the answer, or the error that ends the call. Called once at most, and not after the call was cancelled; must not raise."""


class StreamingCall(_Accounted):
    """A call of many messages. Its task is cancelled when the client leaves or its deadline passes; the error that ends it is raised."""

    __slots__ = ()

    @abstractmethod
    async def read(self) -> bytes | None:
        """Return the next message as it came, compressed or not; None when the client sends no more."""

    def read_through(self, take: Callable[[bytes], bool]) -> None:
        """Let `take` have messages the moment they come while `read` waits for one; what it refuses, `read` returns."""

    @abstractmethod
    async def write(self, message: bytes) -> None:
        """Send a message; return when there is room for the next one. Raises CancelledError where the client left."""

    def try_write(self, message: bytes) -> bool:
        """Send a message if nothing has to be waited for, and say whether that was done; not while `write` is at work."""
        return False
