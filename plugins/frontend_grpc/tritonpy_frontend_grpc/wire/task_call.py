"""A gRPC call with a task: any method except ModelInfer."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tritonpy import Internal, TritonError, Unsupported
from tritonpy_frontend_grpc.call import StreamingCall
from tritonpy_frontend_grpc.deadline import DeadlineExceeded
from tritonpy_frontend_grpc.wire.compression import frame_message
from tritonpy_frontend_grpc.wire.message_frames import MessageReader
from tritonpy_frontend_grpc.wire.response_headers import (
    OK_TRAILERS,
    RESPONSE_HEADERS,
    compressed_headers,
    status_and_trailers,
)
from tritonpy_frontend_grpc.wire.wire_call import CANCELLED, INCOMPLETE, MORE_MESSAGES, NO_MESSAGE, WireCall

if TYPE_CHECKING:
    from tritonpy_frontend_grpc.wire.head import CallHead, Headers
    from tritonpy_frontend_grpc.wire.message_frames import MessageFrame


class WireTaskCall(WireCall, StreamingCall):
    """Receives and sends the messages of one call.

    Its task is cancelled when the client disconnects or the deadline passes; `over` is then set.
    """

    over = False
    _late = False
    _reading_done = False
    _started = False
    _refused_frame: MessageFrame | None = None

    def __init__(self, head: CallHead) -> None:
        self.head = head
        self.task: Any = None  # set by the creator before the call is served
        self._frames = MessageReader()
        self._direct_reader: Callable[[bytes], bool] = _refuse

    @abstractmethod
    async def receive(self) -> tuple[bytes, bool] | None:
        """Return the next part of the body and whether more follows; None after a disconnect."""

    @abstractmethod
    async def send(self, head: Headers | None, data: bytes, trailers: Headers | None) -> None:
        """Send head, data and trailers of the response, each optional.

        Return when more may be sent.

        Trailers without an earlier head are the complete response. Raises OSError after a disconnect.
        """

    def done(self) -> None:
        """End the call, and break the reference cycle with the direct reader."""
        super().done()
        self._direct_reader = _refuse

    def all_read(self) -> None:
        """Called at the end of the body."""

    def leave(self) -> None:
        """Cancel the call: the client has disconnected."""
        self.over = True
        self.task.cancel()

    def message_taken(self) -> None:
        """Called when a complete message was removed from the received data."""

    def limit_messages(self, limit: int) -> None:
        """Set the longest message in bytes; 0 means no limit."""
        self._frames.limit = limit

    async def message(self) -> bytes:
        """Return the only message of a unary call.

        Raises TritonError if there is not exactly one.
        """
        message = await self.read()
        if message is None:
            raise Unsupported(NO_MESSAGE)
        if self._frames.partial:
            raise Unsupported(MORE_MESSAGES)
        return message

    async def read(self) -> bytes | None:
        while (frame := self._refused_frame or self._frames.next()) is None:
            if self._reading_done:
                if self._frames.partial:
                    raise Internal(INCOMPLETE)
                return None
            part = await self.receive()
            if part is None:
                self.leave()
                raise asyncio.CancelledError
            self._frames.feed(part[0])
            if not part[1]:
                self._reading_done = True
                self.all_read()
        self._refused_frame = None
        self.message_taken()
        return self.message_of(frame)

    def set_direct_reader(self, take: Callable[[bytes], bool]) -> None:
        self._direct_reader = take

    def read_directly(self, part: bytes) -> bool:
        """Process a part of the body while `receive` waits for it; never the last part.

        Return False if a message remains for `read`. Raises TritonError for an invalid message.
        """
        self._frames.feed(part)
        while (frame := self._frames.next()) is not None:
            self.message_taken()
            if not self._direct_reader(self.message_of(frame)):
                self._refused_frame = frame
                return False
        return True

    async def write(self, message: bytes) -> None:
        await self._put(await frame_message(message, self.compression), None)

    async def respond(self, message: bytes) -> None:
        """Send the only message of a response and the status OK."""
        await self._put(await frame_message(message, self.compression), OK_TRAILERS)

    async def finish(self) -> None:
        """Send the status OK after any number of messages."""
        await self._put(b"", OK_TRAILERS)

    async def fail(self, error: TritonError) -> None:
        """End the call with an error status."""
        self.status, trailers = status_and_trailers(error)
        await self._deliver(None, b"", trailers)

    async def give_up(self) -> None:
        """End a call after a disconnect or its deadline."""
        if self._late:
            await self.fail(DeadlineExceeded())
        else:
            self.status = CANCELLED

    def expire(self) -> None:
        self._late = self.over = True
        self.task.cancel()

    async def _put(self, data: bytes, trailers: Headers | None) -> None:
        head = (
            None
            if self._started
            else RESPONSE_HEADERS
            if self.compression is None
            else compressed_headers(self.compression.name)
        )
        self._started = True
        await self._deliver(head, data, trailers)

    async def _deliver(self, head: Headers | None, data: bytes, trailers: Headers | None) -> None:
        try:
            await self.send(head, data, trailers)
        except OSError:  # the client disconnected
            self.over = True
            raise asyncio.CancelledError from None


def _refuse(_message: bytes) -> bool:
    return False
