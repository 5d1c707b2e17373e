"""What all gRPC calls have in common that no library carries: metadata, deadline, and how they ended."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING

from tritonpy import Internal, InvalidArgument, now_ns
from tritonpy_frontend_grpc.call import Call
from tritonpy_frontend_grpc.unpacking import PACKED, packed_as
from tritonpy_frontend_grpc.wire.head import timeout_ns

if TYPE_CHECKING:
    from tritonpy_frontend_grpc.call import Metadata
    from tritonpy_frontend_grpc.wire.compression import Compression
    from tritonpy_frontend_grpc.wire.frames import Frame
    from tritonpy_frontend_grpc.wire.head import Head

CANCELLED = 1
INCOMPLETE = "the request ends in the middle of a message"
NO_MESSAGE = "a call of this method has one message, and this one has none"
MORE_MESSAGES = "a call of this method has one message, and this one has more"


class CarriedCall(Call):
    """A call with its head. `status` is the number of the one that it ended with."""

    status = 0
    compression: Compression | None = None  # of its answers
    head: Head
    _deadline_ns = 0
    _expiry: asyncio.TimerHandle | None = None
    _callbacks: tuple[Callable[[], None], ...] = ()

    def metadata(self) -> Metadata:
        """Return the client's metadata. Raises Malformed where it is not gRPC's."""
        return self.head.metadata()

    def deadline_ns(self) -> int:
        return self._deadline_ns

    def when_done(self, callback: Callable[[], None]) -> None:
        self._callbacks = (*self._callbacks, callback)

    def limit_time(self) -> None:
        """Let the call expire when the time is over that its client gives it."""
        left_ns = timeout_ns(self.head.headers)
        if left_ns is not None:
            self._deadline_ns = now_ns() + left_ns
            self._expiry = asyncio.get_running_loop().call_later(left_ns / 1e9, self.expire)

    @abstractmethod
    def expire(self) -> None:
        """End the call: its client waits no longer."""

    def done(self) -> None:
        """Take note that the call is over."""
        if self._expiry is not None:
            self._expiry.cancel()
        for callback in self._callbacks:
            callback()

    def unframed(self, frame: Frame) -> bytes:
        """Return the message of a frame, still compressed if it came so. Raises TritonError where it is not what its flag says."""
        if frame.packed:
            encoding = self.head.headers.get(b"grpc-encoding", b"identity")
            if frame.packed != 1 or encoding == b"identity":
                raise Internal("a message is marked as compressed, and the call does not say how")
            if frame.message and packed_as(frame.message) != encoding:
                raise Internal(f"Unexpected error decompressing data for algorithm {encoding.decode('latin-1')}")
        elif frame.message[:1] in PACKED and packed_as(frame.message):
            raise InvalidArgument("unable to parse the request: it is compressed and not marked so")
        return frame.message
