"""One ModelStreamInfer call on grpc.aio: reads requests and writes answers at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import grpc

from tritonpy import TritonError, Unavailable
from tritonpy_frontend_grpc.deadline import deadline_of
from tritonpy_frontend_grpc.status import SHUTTING_DOWN
from tritonpy_frontend_grpc.stream import Slot, Stream, Window

Take = Callable[[Stream, bytes], Awaitable[None] | None]

# Beyond this many bytes that the client does not fetch, its stream is not read any further.
MAX_UNSENT_BYTES = 64 * 2**20


class StreamCall:
    """The call's handler writes, a task of its own reads; both end with the call.

    `take` gets the bytes of each request as they arrive; the next one waits for what it returns, if anything.
    `window` and `ends_on_error` are those of `Stream`.
    """

    def __init__(
        self, context: grpc.aio.ServicerContext[Any, Any], take: Take, window: Window, ends_on_error: bool
    ) -> None:
        self._context = context
        self._take = take
        self._wake = asyncio.Event()
        self._fetched = asyncio.Event()
        self._closed = False
        self._stream = Stream(window, ends_on_error, self._wake.set, deadline_of(context))

    async def run(self) -> TritonError | None:
        """Serve until the client is done and everything is answered; return the error that the call is to end with."""
        reader = asyncio.create_task(self._read())
        reader.add_done_callback(lambda _: self._wake.set())
        try:
            return await self._write(reader)
        finally:  # also when the client went away, or its deadline passed: then this task is cancelled
            reader.cancel()
            self._stream.abandon()

    def close(self) -> None:
        """End the call as soon as what was answered is sent."""
        self._closed = True
        self._wake.set()

    async def _read(self) -> None:
        stream = self._stream
        while (raw := await self._context.read()) is not grpc.aio.EOF:  # type: ignore[attr-defined]
            if (taking := self._take(stream, raw)) is not None:
                await taking
            while stream.unsent_bytes > MAX_UNSENT_BYTES:
                self._fetched.clear()
                await self._fetched.wait()

    async def _write(self, reader: asyncio.Task[None]) -> TritonError | None:
        stream = self._stream
        while True:
            self._wake.clear()
            while (outgoing := stream.next()) is not None:
                if isinstance(outgoing.item, TritonError):
                    return outgoing.item
                await self._send(outgoing.slot, outgoing.item)
                stream.sent(outgoing)
                self._fetched.set()
            if self._closed:
                return Unavailable(SHUTTING_DOWN)
            if reader.done() and stream.idle:
                reader.result()  # where reading failed, the call does
                return None
            await self._wake.wait()

    async def _send(self, slot: Slot, item: bytes) -> None:
        write = self._context.write
        try:
            if slot.trace is None:
                await write(item)
            else:
                await slot.trace.write(write, item)
        except (
            grpc.aio.InternalError
        ):  # the client left in the middle of it: the call ends as it does at any other time
            raise asyncio.CancelledError from None
