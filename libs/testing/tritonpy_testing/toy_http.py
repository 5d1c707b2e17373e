"""An HTTP server whose responses a test defines."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

Responder = Callable[[str, str, bytes], Awaitable[bytes | None]]
"""Maps method, path and body to a raw response; None closes the connection."""


def http_response(
    body: bytes | Mapping[str, Any] = b"{}", status: str = "200 OK", more: str = ""
) -> bytes:
    """Return a raw HTTP response."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(content)}\r\n{more}\r\n".encode() + content


class ToyHttp:
    """Records the heads of all requests; `port` is its port."""

    def __init__(self, respond: Responder) -> None:
        self._respond = respond
        self.heads: list[str] = []
        self.connections = 0
        self.port = 0

    async def start(self, context: ssl.SSLContext | None = None) -> asyncio.Server:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=1 << 24, ssl=context)
        self.port = server.sockets[0].getsockname()[1]
        return server

    async def end(self, server: asyncio.Server) -> None:
        server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                self.heads.append(head)
                length = next(
                    (
                        int(line.split(":")[1])
                        for line in head.lower().split("\r\n")
                        if line.startswith("content-length")
                    ),
                    0,
                )
                body = await reader.readexactly(length)
                method, path, _ = head.split(" ", 2)
                raw = await self._respond(method, path, body)
                if raw is None:
                    break
                writer.write(raw)
                await writer.drain()
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            pass
        finally:
            writer.close()


@contextmanager
def toy_http(respond: Responder, context: ssl.SSLContext | None = None) -> Iterator[ToyHttp]:
    """Run a server in a thread, with TLS if `context` is given."""
    toy, loop = ToyHttp(respond), asyncio.new_event_loop()
    server = loop.run_until_complete(toy.start(context))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield toy
    finally:
        asyncio.run_coroutine_threadsafe(toy.end(server), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


METADATA = {
    "name": "m",
    "versions": ["1"],
    "platform": "toy",
    "inputs": [{"name": "A", "datatype": "INT32", "shape": [-1, 3]}],
    "outputs": [{"name": "B", "datatype": "INT32", "shape": [-1, 3]}],
}


def kserve(infer: Callable[[bytes], Awaitable[bytes | None]]) -> Responder:
    """Return a responder with metadata and inference only, and without binary tensors."""

    async def respond(_method: str, path: str, body: bytes) -> bytes | None:
        if path == "/v2":
            return http_response({"name": "toy", "version": "9", "extensions": []})
        if path == "/v2/models/m":
            return http_response(METADATA)
        if path == "/v2/models/m/infer":
            return await infer(body)
        return http_response({"detail": "Not Found"}, "404 Not Found")

    return respond
