"""One gRPC call through Envoy that has a task: any but ModelInfer."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from tritonpy import Internal, TritonError, Unsupported
from tritonpy_frontend_envoy.grpc.carried_call import CANCELLED, CarriedCall
from tritonpy_frontend_envoy.grpc.compression import framed
from tritonpy_frontend_envoy.grpc.frames import Frames
from tritonpy_frontend_envoy.grpc.replies import END, OK, START, chunk, failed, only_trailers, start, trailers
from tritonpy_frontend_grpc.call import StreamingCall
from tritonpy_frontend_grpc.deadline import DeadlineExceeded

if TYPE_CHECKING:
    from tritonpy_frontend_envoy.grpc.replies import Event, Receive, Send


class Exchange(CarriedCall, StreamingCall):
    """What the call receives and sends, in ASGI's words. Its task is cancelled when the client leaves or its deadline passes; then it is `over`."""

    over = False
    _late = False
    _read_all = False
    _started = False
    _lookout: asyncio.Task[None] | None = None

    def __init__(self, scope: Any, headers: dict[bytes, bytes], receive: Receive, send: Send) -> None:
        self.scope = scope
        self.headers = headers
        self._receive = receive
        self._send = send
        self._frames = Frames()
        self.task: Any = asyncio.current_task()

    async def message(self) -> bytes:
        """Return the one message of a call that has one. Raises TritonError where it has another number of them."""
        message = await self.read()
        if message is None:
            raise Unsupported("a call of this method has one message, and this one has none")
        if self._frames.partial:
            raise Unsupported("a call of this method has one message, and this one has more")
        return message

    async def read(self) -> bytes | None:
        while (frame := self._frames.next()) is None:
            if self._read_all:
                if self._frames.partial:
                    raise Internal("the request ends in the middle of a message")
                return None
            event = await self._receive()
            if event["type"] == "http.disconnect":
                self._leave()
                raise asyncio.CancelledError
            self._frames.feed(event.get("body", b""))
            if not event.get("more_body", False):
                self._read_all = True
                self._lookout = asyncio.create_task(self._look_out())
        return self.unframed(frame)

    async def write(self, message: bytes) -> None:
        await self._begin()
        await self._put(chunk(await framed(message, self.compression), last=False))

    async def answer(self, message: bytes) -> None:
        """Send the one message of an answer, and that all went well."""
        await self._begin()
        await self._put(chunk(await framed(message, self.compression), last=True))
        await self._put(OK)

    async def finish(self) -> None:
        """Send that all went well, after any number of messages."""
        await self._begin()
        await self._put(END)
        await self._put(OK)

    async def fail(self, error: TritonError) -> None:
        """Send how the call ended."""
        self.status, headers = failed(error)
        if self._started:
            await self._put(END)
            await self._put(trailers(headers))
        else:
            await self._put(only_trailers(headers))
            await self._put(END)

    async def give_up(self) -> None:
        """End a call that is over: its client left, or waits no longer."""
        if self._late:
            await self.fail(DeadlineExceeded("Deadline Exceeded"))
        else:
            self.status = CANCELLED

    def expire(self) -> None:
        self._late = self.over = True
        self.task.cancel()

    def done(self) -> None:
        super().done()
        if self._lookout is not None:
            self._lookout.cancel()

    async def _look_out(self) -> None:
        """Hear of it when the client leaves after it has sent everything."""
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._leave()

    def _leave(self) -> None:
        self.over = True
        self.task.cancel()

    async def _begin(self) -> None:
        if not self._started:
            self._started = True
            await self._put(START if self.compression is None else start(self.compression.name))

    async def _put(self, event: Event) -> None:
        try:
            await self._send(event)
        except OSError:  # the client left
            self.over = True
            raise asyncio.CancelledError from None
