"""Abstract gRPC calls, independent of the transport."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tritonpy import InferRequest, InferResponse, TritonError
    from tritonpy.frontend import ClientMemory, Reservation

Metadata = Iterable[tuple[str, Any]]
"""Pairs of lower-case key and text, or bytes for keys ending in `-bin`.

Without gRPC's own headers.
"""


class GrpcCall(ABC):
    """A call of a client. All methods run on the event loop."""

    __slots__ = ()

    @abstractmethod
    def metadata(self) -> Metadata:
        """Return the metadata of the call."""

    @abstractmethod
    def deadline_ns(self) -> int:
        """Return the deadline in ns on the server's clock, 0 for none."""

    @abstractmethod
    def when_done(self, callback: Callable[[], None]) -> None:
        """Call `callback` once when the call has ended.

        A call ends when its response was sent or the client is gone.
        """


class _MemoryCountedCall(GrpcCall):
    """A call whose client's memory is counted."""

    __slots__ = ()

    def account(self) -> ClientMemory | None:
        """Return the memory of the client, or None if the transport does not know the client."""
        return None


class InferCall(_MemoryCountedCall):
    """A call of ModelInfer, which has no task.

    The service sets `request`, and sets `over` when the call has ended.
    """

    def __init__(self) -> None:
        self.over = False
        self.responses = 0  # number of responses before the final one
        self.first_response: InferResponse | None = None
        self.request: InferRequest | None = None
        self.memory: Reservation | None = None  # for the message, as long as the call is referenced

    @abstractmethod
    def finish(self, answer: bytes | TritonError) -> None:
        """Send the response message, or the error that ends the call. Must not raise.

        Called at most once, and not after the call was cancelled.
        """


class StreamingCall(_MemoryCountedCall):
    """A call of many messages.

    Its task is cancelled when the client disconnects or the deadline passes. The task raises the
    error that ends the call.
    """

    __slots__ = ()

    @abstractmethod
    async def read(self) -> bytes | None:
        """Return the next message, possibly still compressed; None after the last one."""

    def set_direct_reader(self, take: Callable[[bytes], bool]) -> None:
        """Pass messages directly to `take` while `read` waits for one.

        `read` returns a message for which `take` returned False.
        """

    @abstractmethod
    async def write(self, message: bytes) -> None:
        """Send a message; return when the next one may be sent.

        Raises CancelledError after a disconnect.
        """

    def try_write(self, message: bytes) -> bool:
        """Send a message if that is possible without waiting; return whether it was sent.

        Must not be called while `write` is running.
        """
        return False
