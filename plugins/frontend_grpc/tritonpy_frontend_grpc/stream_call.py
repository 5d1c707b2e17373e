"""One ModelStreamInfer call: reads requests and writes answers at the same time. Knows no transport."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from tritonpy import ClientMemory, TritonError, Unavailable
from tritonpy_frontend_grpc.call import StreamingCall
from tritonpy_frontend_grpc.status import SHUTTING_DOWN
from tritonpy_frontend_grpc.stream import Stream, Window

Take = Callable[[Stream, bytes], Awaitable[None] | None]
TakeNow = Callable[[Stream, bytes], bool]

# Beyond this many bytes that the client does not fetch, its stream is not read any further.
MAX_UNSENT_BYTES = 64 * 2**20


class StreamCall:
    """The call's handler writes, a task of its own reads; both end with the call. What needs no waiting is done without them.

    `take` gets the bytes of each request as they arrive; the next one waits for what it returns, if anything. `take_now` does the same with a
    request for which no next one would have to wait, and otherwise returns False.
    `window` and `ends_on_error` are those of `Stream`.
    """

    def __init__(
        self,
        call: StreamingCall,
        take: Take,
        take_now: TakeNow,
        window: Window,
        ends_on_error: bool,
        account: ClientMemory | None = None,
    ) -> None:
        self._call = call
        self._take = take
        self._take_now = take_now
        self._wake = asyncio.Event()
        self._fetched = asyncio.Event()
        self._closed = False
        self._all_read = False
        self._waiting = False  # for something to send
        self._stream = Stream(window, ends_on_error, self._changed, call.deadline_ns(), account)

    async def run(self) -> TritonError | None:
        """Serve until the client is done and everything is answered; return the error that the call is to end with."""
        reader = asyncio.create_task(self._read())
        reader.add_done_callback(self._read_all)
        try:
            return await self._write(reader)
        finally:  # also when the client went away, or its deadline passed: then this task is cancelled
            reader.cancel()
            self._stream.abandon()

    def close(self) -> None:
        """End the call as soon as what was answered is sent."""
        self._closed = True
        self._wake.set()

    def _read_all(self, _reader: asyncio.Task[None]) -> None:
        self._all_read = True
        self._wake.set()

    def _changed(self) -> None:
        if not self._waiting or not self._send_at_once() or (self._all_read and self._stream.idle):
            self._wake.set()

    def _send_at_once(self) -> bool:
        """Return whether everything could be sent without the task that writes."""
        stream = self._stream
        while (outgoing := stream.first()) is not None:
            item = outgoing.item
            if isinstance(item, TritonError) or outgoing.slot.trace is not None or not self._call.try_write(item):
                return False
            stream.next()
            stream.sent(outgoing)
            self._fetched.set()
        return True

    def _read_now(self, raw: bytes) -> bool:
        return self._stream.unsent_bytes <= MAX_UNSENT_BYTES and self._take_now(self._stream, raw)

    async def _read(self) -> None:
        stream = self._stream
        self._call.read_through(self._read_now)
        while (raw := await self._call.read()) is not None:
            while stream.unsent_bytes > MAX_UNSENT_BYTES:
                self._fetched.clear()
                await self._fetched.wait()
            if (taking := self._take(stream, raw)) is not None:
                await taking

    async def _write(self, reader: asyncio.Task[None]) -> TritonError | None:
        stream = self._stream
        while True:
            self._wake.clear()
            while (outgoing := stream.next()) is not None:
                if isinstance(outgoing.item, TritonError):
                    return outgoing.item
                if outgoing.slot.trace is None:
                    await self._call.write(outgoing.item)
                else:
                    await outgoing.slot.trace.write(self._call.write, outgoing.item)
                stream.sent(outgoing)
                self._fetched.set()
            if self._closed:
                return Unavailable(SHUTTING_DOWN)
            if reader.done() and stream.idle:
                reader.result()  # where reading failed, the call does
                return None
            self._waiting = True
            await self._wake.wait()
            self._waiting = False
