"""One gRPC call on a stream that has a task: any but ModelInfer."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from tritonpy_frontend_grpc.wire.exchange import Exchange
from tritonpy_frontend_grpc.wire.frames import LONGEST, prefix
from tritonpy_frontend_h2.blocks import head_block, refusal_block, trailer_block
from tritonpy_frontend_h2.http2.calls import UNCOUNTED, Receiver

if TYPE_CHECKING:
    from tritonpy import ClientMemory, Reservation, TritonError
    from tritonpy_frontend_grpc.wire.head import Head, Headers
    from tritonpy_frontend_h2.http2.calls import Stream

# Parts are joined up to here: each costs memory beside its bytes, and only those count against the window.
_SMALL = 4 * 1024


class H2Exchange(Exchange, Receiver):
    """What came and was not read yet is held, so that a client sends no more than that. A client that does not read is waited for."""

    _begun = False  # the answer's head was sent
    _wanted: asyncio.Future[None] | None = None  # what came is waited for
    _room: asyncio.Future[None] | None = None  # the client is waited for
    _done = False  # what comes now is of no use
    _refusal: TritonError | None = None  # why what comes is not kept any more

    def __init__(self, head: Head, stream: Stream) -> None:
        super().__init__(head)
        self._stream = stream
        self._parts: deque[tuple[bytes, bool]] = deque()
        self._waiting = 0  # bytes in `_parts`
        self._memory: Reservation | None = None  # for what came and is no whole message yet

    def account(self) -> ClientMemory | None:
        account: ClientMemory | None = self._stream.account  # type: ignore[assignment]  # as the server gave it
        return account

    def _reserve(self, count: int) -> TritonError | None:
        """Reserve memory for `count` bytes that came; return the error that ends the call if there is none."""
        nbytes, account = self._waiting + self._frames.unread + count, self.account()
        if nbytes <= UNCOUNTED or account is None:
            return None
        if self._memory is None:
            self._memory = account.reservation()
        return None if self._memory.grow(nbytes) else account.memory.refusal(nbytes)

    def taken(self) -> None:
        if self._memory is not None:
            self._memory.shrink(self._waiting + self._frames.unread)

    def data(self, data: bytes | memoryview, ended: bool) -> None:
        if self.over or self._done:
            return
        refusal = self._reserve(len(data))
        if refusal is not None:
            self._parts.clear()
            self._waiting = 0
            self._refusal = refusal
            if self._wanted is not None and not self._wanted.done():
                self._wanted.set_exception(refusal)
            return
        part = bytes(data)
        wanted = self._wanted
        if not ended and wanted is not None and not wanted.done():
            try:
                if not self.pass_through(part):
                    self._parts.append((b"", True))
                    wanted.set_result(None)
            except Exception as error:  # it is this call's: the connection has others
                wanted.set_exception(error)
            return
        self._stream.hold(len(part))
        if self._parts and len(self._parts[-1][0]) < _SMALL:
            part = self._parts.pop()[0] + part
        self._waiting += len(data)
        self._parts.append((part, not ended))
        if self._wanted is not None and not self._wanted.done():
            self._wanted.set_result(None)

    def done(self) -> None:
        super().done()
        self._parts.clear()
        self._done = True
        self._wanted = self._refusal = None  # an error that was raised refers to this through its traceback

    def reset(self) -> None:
        self.leave()

    def resume(self) -> None:
        room, self._room = self._room, None
        if room is not None and not room.done():
            room.set_result(None)

    def try_write(self, message: bytes) -> bool:
        if self._room is not None or not self._begun or self.compression is not None or self.over:
            return False
        if len(message) > LONGEST:  # `write` says in its call what is wrong with it
            return False
        if not self._stream.admits(len(message)):  # the same
            return False
        if not self._stream.send(None, (prefix(message), message), None):
            self._room = asyncio.get_running_loop().create_future()
        return True

    async def receive(self) -> tuple[bytes, bool]:
        while not self._parts:
            if self._refusal is not None:
                raise self._refusal
            self._wanted = asyncio.get_running_loop().create_future()
            await self._wanted
        part = self._parts.popleft()
        self._waiting -= len(part[0])
        self._stream.consumed(len(part[0]))
        return part

    async def send(self, head: Headers | None, data: bytes, trailers: Headers | None) -> None:
        stream, begun = self._stream, self._begun
        account = self.account()
        if account is not None and not stream.admits(len(data)):
            raise account.memory.refusal(len(data))
        self._begun = True  # ahead of what waits for the client: the call may end in the middle of that
        if trailers is None:
            if self._room is not None:
                await self._room
            if not stream.send(head_block(head) if head else None, (data,), None):
                self._room = asyncio.get_running_loop().create_future()
                await self._room
        elif head is None and not begun:
            stream.send(None, (), refusal_block(trailers))
        else:
            stream.send(head_block(head) if head else None, (data,) if data else (), trailer_block(trailers))
