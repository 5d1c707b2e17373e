"""A gRPC call with a task on an HTTP/2 stream: any method except ModelInfer."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from tritonpy_frontend_grpc.wire.message_frames import MAX_MESSAGE_BYTES, prefix
from tritonpy_frontend_grpc.wire.task_call import WireTaskCall
from tritonpy_frontend_h2.header_blocks import refusal_block, response_head_block, trailer_block
from tritonpy_http2 import UNCOUNTED, Receiver

if TYPE_CHECKING:
    from tritonpy import ClientMemory, ClientReservation, TritonError
    from tritonpy_frontend_grpc.wire.head import CallHead, Headers
    from tritonpy_http2 import Http2CallStream

# Parts up to this size are joined: each has a memory overhead that flow control does not count.
_JOIN_BELOW = 4 * 1024


class H2TaskCall(WireTaskCall, Receiver):
    """A call with flow control in both directions.

    Unread data reduces the client's window. Sending waits while the client does not read.
    """

    _head_sent = False  # the head of the response was sent
    _data_waiter: asyncio.Future[None] | None = None  # set while `receive` waits for data
    _write_waiter: asyncio.Future[None] | None = None  # set while the client does not read
    _is_done = False  # further data is dropped
    _memory_error: TritonError | None = None  # the error after which data is dropped

    def __init__(self, head: CallHead, stream: Http2CallStream) -> None:
        super().__init__(head)
        self._stream = stream
        self._parts: deque[tuple[bytes, bool]] = deque()
        self._waiting = 0  # bytes in `_parts`
        self._memory: ClientReservation | None = None  # for incomplete messages

    def account(self) -> ClientMemory | None:
        account: ClientMemory | None = self._stream.account  # type: ignore[assignment]  # the type that the server passed in
        return account

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

    def message_taken(self) -> None:
        if self._memory is not None:
            self._memory.shrink(self._waiting + self._frames.unread)

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
                if not self.read_directly(part):
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

    def done(self) -> None:
        super().done()
        self._parts.clear()
        self._is_done = True
        self._data_waiter = self._memory_error = None  # a raised error refers to this object through its traceback

    def reset(self) -> None:
        self.leave()

    def resume(self) -> None:
        waiter, self._write_waiter = self._write_waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def try_write(self, message: bytes) -> bool:
        if self._write_waiter is not None or not self._head_sent or self.compression is not None or self.over:
            return False
        if len(message) > MAX_MESSAGE_BYTES:  # `write` raises the error
            return False
        if not self._stream.admits(len(message)):  # `write` raises the error
            return False
        if not self._stream.send(None, (prefix(message), message), None):
            self._write_waiter = asyncio.get_running_loop().create_future()
        return True

    async def receive(self) -> tuple[bytes, bool]:
        while not self._parts:
            if self._memory_error is not None:
                raise self._memory_error
            self._data_waiter = asyncio.get_running_loop().create_future()
            await self._data_waiter
        part = self._parts.popleft()
        self._waiting -= len(part[0])
        self._stream.consumed(len(part[0]))
        return part

    async def send(self, head: Headers | None, data: bytes, trailers: Headers | None) -> None:
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
            stream.send(response_head_block(head) if head else None, (data,) if data else (), trailer_block(trailers))
