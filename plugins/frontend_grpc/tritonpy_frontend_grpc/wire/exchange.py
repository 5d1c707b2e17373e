"""One gRPC call that has a task: any but ModelInfer."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tritonpy import Internal, TritonError, Unsupported
from tritonpy_frontend_grpc.call import StreamingCall
from tritonpy_frontend_grpc.deadline import DeadlineExceeded
from tritonpy_frontend_grpc.wire.carried_call import CANCELLED, INCOMPLETE, MORE_MESSAGES, NO_MESSAGE, CarriedCall
from tritonpy_frontend_grpc.wire.compression import framed
from tritonpy_frontend_grpc.wire.frames import Frames
from tritonpy_frontend_grpc.wire.replies import OK, PLAIN, failed, head_of

if TYPE_CHECKING:
    from tritonpy_frontend_grpc.wire.frames import Frame
    from tritonpy_frontend_grpc.wire.head import Head, Headers


class Exchange(CarriedCall, StreamingCall):
    """What the call receives and sends. Its task is cancelled when the client leaves or its deadline passes; then it is `over`."""

    over = False
    _late = False
    _read_all = False
    _started = False
    _refused: Frame | None = None

    def __init__(self, head: Head) -> None:
        self.head = head
        self.task: Any = None  # whoever makes it sets this, before the call is served
        self._frames = Frames()
        self._through: Callable[[bytes], bool] = _refuse

    @abstractmethod
    async def receive(self) -> tuple[bytes, bool] | None:
        """Return the next part of the body, and whether more follows; None where the client left."""

    @abstractmethod
    async def send(self, head: Headers | None, data: bytes, trailers: Headers | None) -> None:
        """Send the next piece of the answer: its head, some of its body, what ends it. Return when there is room for the next one.

        Trailers without a head, now or before, are the whole answer. Raises OSError where the client left.
        """

    def done(self) -> None:
        """Record that the call is over, and let go of who took its messages: they refer to each other."""
        super().done()
        self._through = _refuse

    def all_read(self) -> None:
        """Take note that the body ended."""

    def leave(self) -> None:
        """Take note that the client left."""
        self.over = True
        self.task.cancel()

    def taken(self) -> None:
        """Record that a whole message was taken out of what came."""

    def limit_messages(self, limit: int) -> None:
        """Refuse longer messages; 0 for any length."""
        self._frames.limit = limit

    async def message(self) -> bytes:
        """Return the one message of a call that has one. Raises TritonError where it has another number of them."""
        message = await self.read()
        if message is None:
            raise Unsupported(NO_MESSAGE)
        if self._frames.partial:
            raise Unsupported(MORE_MESSAGES)
        return message

    async def read(self) -> bytes | None:
        while (frame := self._refused or self._frames.next()) is None:
            if self._read_all:
                if self._frames.partial:
                    raise Internal(INCOMPLETE)
                return None
            part = await self.receive()
            if part is None:
                self.leave()
                raise asyncio.CancelledError
            self._frames.feed(part[0])
            if not part[1]:
                self._read_all = True
                self.all_read()
        self._refused = None
        self.taken()
        return self.unframed(frame)

    def read_through(self, take: Callable[[bytes], bool]) -> None:
        self._through = take

    def pass_through(self, part: bytes) -> bool:
        """Take a part of the body while `receive` waits for it and is not the end; False: messages are left for `read`. Raises TritonError."""
        self._frames.feed(part)
        while (frame := self._frames.next()) is not None:
            self.taken()
            if not self._through(self.unframed(frame)):
                self._refused = frame
                return False
        return True

    async def write(self, message: bytes) -> None:
        await self._put(await framed(message, self.compression), None)

    async def answer(self, message: bytes) -> None:
        """Send the one message of an answer, and that all went well."""
        await self._put(await framed(message, self.compression), OK)

    async def finish(self) -> None:
        """Send that all went well, after any number of messages."""
        await self._put(b"", OK)

    async def fail(self, error: TritonError) -> None:
        """Send how the call ended."""
        self.status, trailers = failed(error)
        await self._deliver(None, b"", trailers)

    async def give_up(self) -> None:
        """End a call that is over: its client left, or waits no longer."""
        if self._late:
            await self.fail(DeadlineExceeded())
        else:
            self.status = CANCELLED

    def expire(self) -> None:
        self._late = self.over = True
        self.task.cancel()

    async def _put(self, data: bytes, trailers: Headers | None) -> None:
        head = None if self._started else PLAIN if self.compression is None else head_of(self.compression.name)
        self._started = True
        await self._deliver(head, data, trailers)

    async def _deliver(self, head: Headers | None, data: bytes, trailers: Headers | None) -> None:
        try:
            await self.send(head, data, trailers)
        except OSError:  # the client left
            self.over = True
            raise asyncio.CancelledError from None


def _refuse(_message: bytes) -> bool:
    return False
