"""A gRPC call with a task on an HTTP/2 stream: any method except ModelInfer."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tritonpy import Internal, TritonError, Unsupported
from tritonpy_frontend_grpc.call import StreamingCall
from tritonpy_frontend_grpc.deadline import DeadlineExceeded
from tritonpy_frontend_grpc.h2.compression import frame_message
from tritonpy_frontend_grpc.h2.h2_call import (
    CANCELLED,
    INCOMPLETE,
    MORE_MESSAGES,
    NO_MESSAGE,
    H2Call,
)
from tritonpy_frontend_grpc.h2.message_frames import MAX_MESSAGE_BYTES, MessageReader, prefix
from tritonpy_frontend_grpc.h2.response_headers import (
    OK_TRAILERS,
    RESPONSE_HEADERS,
    compressed_headers,
    refusal_block,
    response_head_block,
    status_and_trailers,
    trailer_block,
)
from tritonpy_http2 import UNCOUNTED, Receiver

if TYPE_CHECKING:
    from tritonpy import ClientReservation
    from tritonpy.frontend import ClientMemory
    from tritonpy_frontend_grpc.h2.head import CallHead, Headers
    from tritonpy_frontend_grpc.h2.message_frames import MessageFrame
    from tritonpy_http2 import Http2CallStream


# Parts up to this size are joined: each has a memory overhead that flow control does not count.
_JOIN_BELOW = 4 * 1024


class H2TaskCall(H2Call, StreamingCall, Receiver):
    """Receives and sends the messages of one call, with flow control in both directions.

    Unread data reduces the client's window. Sending waits while the client does not read. The task
    is cancelled when the client disconnects or the deadline passes; `over` is then set.
    """

    over = False
    _late = False
    _reading_done = False
    _started = False
    _refused_frame: MessageFrame | None = None
    _head_sent = False  # the head of the response was sent
    _data_waiter: asyncio.Future[None] | None = None  # set while `receive` waits for data
    _write_waiter: asyncio.Future[None] | None = None  # set while the client does not read
    _is_done = False  # further data is dropped
    _memory_error: TritonError | None = None  # the error after which data is dropped

    def __init__(self, head: CallHead, stream: Http2CallStream) -> None:
        self.head = head
        self.task: Any = None  # set by the creator before the call is served
        self._frames = MessageReader()
        self._direct_reader: Callable[[bytes], bool] = _refuse
        self._stream = stream
        self._parts: deque[tuple[bytes, bool]] = deque()
        self._waiting = 0  # bytes in `_parts`
        self._memory: ClientReservation | None = None  # for incomplete messages

    def done(self) -> None:
        """End the call, and break the reference cycle with the direct reader."""
        super().done()
        self._direct_reader = _refuse
        self._parts.clear()
        self._is_done = True
        self._data_waiter = self._memory_error = (
            None  # a raised error refers to this object through its traceback
        )

    def account(self) -> ClientMemory | None:
        account: ClientMemory | None = self._stream.account  # type: ignore[assignment]  # the type that the server passed in
        return account

    # What the client sends

    def data(self, data: bytes | memoryview, ended: bool) -> None:
        if self.over or self._is_done:
            return
        refusal = self._reserve(len(data))
        if refusal is not None:
            self._parts.clear()
            self._waiting = 0
            self._memory_error = refusal
            if self._data_waiter is not None and not self._data_waiter.done():
                self._data_waiter.set_exception(refusal)
            return
        part = bytes(data)
        waiter = self._data_waiter
        if not ended and waiter is not None and not waiter.done():
            try:
                if not self._read_directly(part):
                    self._parts.append((b"", True))
                    waiter.set_result(None)
            except Exception as error:  # ends only this call: the connection has others
                waiter.set_exception(error)
            return
        self._stream.hold(len(part))
        if self._parts and len(self._parts[-1][0]) < _JOIN_BELOW:
            part = self._parts.pop()[0] + part
        self._waiting += len(data)
        self._parts.append((part, not ended))
        if self._data_waiter is not None and not self._data_waiter.done():
            self._data_waiter.set_result(None)

    def reset(self) -> None:
        """Cancel the call: the client has disconnected."""
        self.over = True
        self.task.cancel()

    def resume(self) -> None:
        waiter, self._write_waiter = self._write_waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    async def receive(self) -> tuple[bytes, bool]:
        """Return the next part of the body and whether more follows."""
        while not self._parts:
            if self._memory_error is not None:
                raise self._memory_error
            self._data_waiter = asyncio.get_running_loop().create_future()
            await self._data_waiter
        part = self._parts.popleft()
        self._waiting -= len(part[0])
        self._stream.consumed(len(part[0]))
        return part

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
            part, more = await self.receive()
            self._frames.feed(part)
            self._reading_done = not more
        self._refused_frame = None
        self._release_memory()
        return self.message_of(frame)

    def set_direct_reader(self, take: Callable[[bytes], bool]) -> None:
        self._direct_reader = take

    def _read_directly(self, part: bytes) -> bool:
        """Process a part of the body while `receive` waits for it; never the last part.

        Return False if a message remains for `read`. Raises TritonError for an invalid message.
        """
        self._frames.feed(part)
        while (frame := self._frames.next()) is not None:
            self._release_memory()
            if not self._direct_reader(self.message_of(frame)):
                self._refused_frame = frame
                return False
        return True

    def _reserve(self, count: int) -> TritonError | None:
        """Reserve memory for `count` received bytes.

        Return an error if the request memory is full.
        """
        nbytes, account = self._waiting + self._frames.unread + count, self.account()
        if nbytes <= UNCOUNTED or account is None:
            return None
        if self._memory is None:
            self._memory = account.reservation()
        return None if self._memory.grow(nbytes) else account.memory.refusal(nbytes)

    def _release_memory(self) -> None:
        """Reduce the reservation: a complete message was removed from the received data."""
        if self._memory is not None:
            self._memory.shrink(self._waiting + self._frames.unread)

    # What the server sends

    def try_write(self, message: bytes) -> bool:
        if (
            self._write_waiter is not None
            or not self._head_sent
            or self.compression is not None
            or self.over
        ):
            return False
        if len(message) > MAX_MESSAGE_BYTES:  # `write` raises the error
            return False
        if not self._stream.admits(len(message)):  # `write` raises the error
            return False
        if not self._stream.send(None, (prefix(message), message), None):
            self._write_waiter = asyncio.get_running_loop().create_future()
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
        await self._send(None, b"", trailers)

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
        await self._send(head, data, trailers)

    async def _send(self, head: Headers | None, data: bytes, trailers: Headers | None) -> None:
        """Send head, data and trailers of the response, each optional.

        Return when more may be sent. Trailers without an earlier head are the complete response.
        """
        stream, begun = self._stream, self._head_sent
        account = self.account()
        if account is not None and not stream.admits(len(data)):
            raise account.memory.refusal(len(data))
        self._head_sent = True  # set before the wait, because the call may end during the wait
        if trailers is None:
            if self._write_waiter is not None:
                await self._write_waiter
            if not stream.send(response_head_block(head) if head else None, (data,), None):
                self._write_waiter = asyncio.get_running_loop().create_future()
                await self._write_waiter
        elif head is None and not begun:
            stream.send(None, (), refusal_block(trailers))
        else:
            stream.send(
                response_head_block(head) if head else None,
                (data,) if data else (),
                trailer_block(trailers),
            )


def _refuse(_message: bytes) -> bool:
    return False
