"""One gRPC call through Envoy that has a task: any but ModelInfer."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tritonpy_frontend_envoy.grpc.replies import END, chunk, only_trailers, start, trailers
from tritonpy_frontend_grpc.wire.exchange import Exchange

if TYPE_CHECKING:
    from tritonpy_frontend_envoy.grpc.replies import Receive, Send
    from tritonpy_frontend_grpc.wire.head import Head, Headers


class EnvoyExchange(Exchange):
    """What the call receives and sends, in ASGI's words."""

    _begun = False  # the answer's head was sent
    _lookout: asyncio.Task[None] | None = None

    def __init__(self, head: Head, receive: Receive, send: Send) -> None:
        super().__init__(head)
        self._receive = receive
        self._send = send

    async def receive(self) -> tuple[bytes, bool] | None:
        event = await self._receive()
        return None if event["type"] == "http.disconnect" else (event.get("body", b""), event.get("more_body", False))

    async def send(self, head: Headers | None, data: bytes, trailers: Headers | None) -> None:
        if head is not None:
            self._begun = True
            await self._send(start(head))
        if trailers is not None:
            await self._end(data, trailers)
        elif data:
            await self._send(chunk(data, last=False))

    async def _end(self, data: bytes, headers: Headers) -> None:
        if self._begun:
            await self._send(chunk(data, last=True))
            await self._send(trailers(headers))
        else:
            await self._send(only_trailers(headers))
            await self._send(END)

    def all_read(self) -> None:
        """Hear of it when the client leaves after it has sent everything."""
        self._lookout = asyncio.create_task(self._look_out())

    def done(self) -> None:
        super().done()
        if self._lookout is not None:
            self._lookout.cancel()

    async def _look_out(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.leave()
