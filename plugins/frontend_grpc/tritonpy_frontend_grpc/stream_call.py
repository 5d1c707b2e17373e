"""Concurrent reading and writing of one ModelStreamInfer call. Independent of the transport."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from tritonpy import TritonError, Unavailable
from tritonpy.frontend import ClientMemory
from tritonpy_frontend_grpc.call import StreamingCall
from tritonpy_frontend_grpc.status import SHUTTING_DOWN
from tritonpy_frontend_grpc.stream import InferStream, ResponseWindow

Take = Callable[[InferStream, bytes], Awaitable[None] | None]
TakeNow = Callable[[InferStream, bytes], bool]

# Reading of a stream pauses while more unsent bytes than this wait for the client.
MAX_UNSENT_BYTES = 64 * 2**20


class StreamCall:
    """Serves one call: its handler writes and a second task reads.

    Messages that need no waiting bypass both tasks. `take` receives the bytes of each request; the
    next request waits for the awaitable it returns, if any. `receive_now` receives a request that
    can be processed without waiting; otherwise it returns False. `window` and `ends_on_error` are
    arguments of `InferStream`.
    """

    def __init__(
        self,
        call: StreamingCall,
        take: Take,
        receive_now: TakeNow,
        window: ResponseWindow,
        ends_on_error: bool,
        account: ClientMemory | None = None,
    ) -> None:
        self._call = call
        self._take = take
        self._receive_now = receive_now
        self._wake = asyncio.Event()
        self._client_read = asyncio.Event()
        self._closed = False
        self._all_read = False
        self._waiting = False  # whether the writer waits for something to send
        self._stream = InferStream(
            window, ends_on_error, self._changed, call.deadline_ns(), account
        )

    async def run(self) -> TritonError | None:
        """Serve until the client is done and all responses are sent.

        Return the error that ends the call.
        """
        reader = asyncio.create_task(self._read())
        reader.add_done_callback(self._reading_done)
        try:
            return await self._write(reader)
        finally:  # also if this task is cancelled by a disconnect or the deadline
            reader.cancel()
            self._stream.abandon()

    def close(self) -> None:
        """End the call when the pending responses are sent."""
        self._closed = True
        self._wake.set()

    def _reading_done(self, _reader: asyncio.Task[None]) -> None:
        self._all_read = True
        self._wake.set()

    def _changed(self) -> None:
        if (
            not self._waiting
            or not self._send_immediately()
            or (self._all_read and self._stream.idle)
        ):
            self._wake.set()

    def _send_immediately(self) -> bool:
        """Send all messages without the writing task if possible; return whether that succeeded."""
        stream = self._stream
        while (outgoing := stream.first()) is not None:
            item = outgoing.item
            if (
                isinstance(item, TritonError)
                or outgoing.entry.trace is not None
                or not self._call.try_write(item)
            ):
                return False
            stream.next()
            stream.sent(outgoing)
            self._client_read.set()
        return True

    def _read_now(self, raw: bytes) -> bool:
        return self._stream.unsent_bytes <= MAX_UNSENT_BYTES and self._receive_now(
            self._stream, raw
        )

    async def _read(self) -> None:
        stream = self._stream
        self._call.set_direct_reader(self._read_now)
        while (raw := await self._call.read()) is not None:
            while stream.unsent_bytes > MAX_UNSENT_BYTES:
                self._client_read.clear()
                await self._client_read.wait()
            if (taking := self._take(stream, raw)) is not None:
                await taking

    async def _write(self, reader: asyncio.Task[None]) -> TritonError | None:
        stream = self._stream
        while True:
            self._wake.clear()
            while (outgoing := stream.next()) is not None:
                if isinstance(outgoing.item, TritonError):
                    return outgoing.item
                if outgoing.entry.trace is None:
                    await self._call.write(outgoing.item)
                else:
                    await outgoing.entry.trace.write(self._call.write, outgoing.item)
                stream.sent(outgoing)
                self._client_read.set()
            if self._closed:
                return Unavailable(SHUTTING_DOWN)
            if reader.done() and stream.idle:
                reader.result()  # raises the error of the reader
                return None
            self._waiting = True
            await self._wake.wait()
            self._waiting = False
