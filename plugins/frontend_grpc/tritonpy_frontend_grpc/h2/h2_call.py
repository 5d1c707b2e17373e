"""The base of gRPC calls without a library: metadata, deadline and status."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING

from mypy_extensions import mypyc_attr

from tritonpy import Internal, InvalidArgument, now_ns
from tritonpy_frontend_grpc.call import GrpcCall
from tritonpy_frontend_grpc.decompression import COMPRESSED_PREFIXES, compression_name
from tritonpy_frontend_grpc.h2.head import timeout_ns

if TYPE_CHECKING:
    from tritonpy_frontend_grpc.call import Metadata
    from tritonpy_frontend_grpc.h2.compression import Compression
    from tritonpy_frontend_grpc.h2.head import CallHead
    from tritonpy_frontend_grpc.h2.message_frames import MessageFrame

CANCELLED = 1
INCOMPLETE = "the request ends in the middle of a message"
NO_MESSAGE = "a call of this method has one message, and this one has none"
MORE_MESSAGES = "a call of this method has one message, and this one has more"


@mypyc_attr(allow_interpreted_subclasses=True)
class H2Call(GrpcCall):
    """A call with a head. `status` is the gRPC status code that it ended with."""

    status = 0
    compression: Compression | None = None  # of the responses
    head: CallHead
    _deadline_ns = 0
    _expiry: asyncio.TimerHandle | None = None
    _callbacks: tuple[Callable[[], None], ...] = ()

    def metadata(self) -> Metadata:
        """Return the metadata of the call. Raises MalformedCall if it is invalid."""
        return self.head.metadata()

    def deadline_ns(self) -> int:
        return self._deadline_ns

    def when_done(self, callback: Callable[[], None]) -> None:
        self._callbacks = (*self._callbacks, callback)

    def start_deadline(self) -> None:
        """Schedule `expire` at the deadline of the call, if it has one."""
        left_ns = timeout_ns(self.head.headers)
        if left_ns is not None:
            self._deadline_ns = now_ns() + left_ns
            self._expiry = asyncio.get_running_loop().call_later(left_ns / 1e9, self.expire)

    @abstractmethod
    def expire(self) -> None:
        """End the call: its deadline has passed."""

    def done(self) -> None:
        """Run the callbacks: the call has ended."""
        if self._expiry is not None:
            self._expiry.cancel()
        for callback in self._callbacks:
            callback()

    def message_of(self, frame: MessageFrame) -> bytes:
        """Return the message of a frame, possibly compressed.

        Raises TritonError if its flag is wrong.
        """
        if frame.compressed:
            encoding = self.head.headers.get(b"grpc-encoding", b"identity")
            if frame.compressed != 1 or encoding == b"identity":
                raise Internal(
                    "a message is marked as compressed, but the call has no grpc-encoding"
                )
            if frame.message and compression_name(frame.message) != encoding:
                raise Internal(
                    "Unexpected error decompressing data for algorithm "
                    f"{encoding.decode('latin-1')}"
                )
        elif frame.message[:1] in COMPRESSED_PREFIXES and compression_name(frame.message):
            raise InvalidArgument(
                "unable to parse the request: it is compressed but not marked as compressed"
            )
        return frame.message
