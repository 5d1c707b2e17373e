"""The HTTP frontend: uvicorn, hosted on the server's event loop."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from typing import Annotated

import uvicorn
from msgspec import Meta

from tritonpy import ByteSize, Engine, Frontend, FrontendContext, Options, StartupError
from tritonpy_frontend_http.front_door import FrontDoor
from tritonpy_frontend_http.infer_calls import InferCalls
from tritonpy_frontend_http.protocol import InferProtocol

_BACKLOG = 2048


class HttpOptions(Options, frozen=True):
    """The options under `frontends: http:` of server.yaml."""

    port: Annotated[int, Meta(ge=0, le=65535, description="TCP port; 0 picks a free one")] = 8000
    host: Annotated[str | None, Meta(description="Address to listen on instead of the server's")] = None
    reuse_port: Annotated[bool, Meta(description="Let several servers listen on the port (SO_REUSEPORT)")] = False
    max_input_size: Annotated[
        ByteSize, Meta(gt=0, description="Largest JSON, JSON tensor, raw binary body and decompressed body, in bytes")
    ] = 64 * 1024 * 1024
    keep_alive_s: Annotated[int, Meta(ge=0, description="Seconds after which an idle connection is closed")] = 75


class _HostedServer(uvicorn.Server):
    """uvicorn without signal handlers: the process has an owner already."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class HttpFrontend(Frontend):
    """Triton's HTTP/REST protocol.

    Inference calls take the short way of `InferProtocol`, everything else is a Litestar application.
    """

    Options = HttpOptions
    options: HttpOptions

    def __init__(self, options: HttpOptions, context: FrontendContext) -> None:
        super().__init__(options, context)
        self._address = ""
        self._server: _HostedServer | None = None
        self._serving: asyncio.Task[None] | None = None
        self._calls: InferCalls | None = None
        self._door: FrontDoor | None = None

    async def start(self, engine: Engine) -> None:
        """Listen; raises StartupError where the port cannot be had."""
        options, log = self.options, self.context.log
        self._calls = InferCalls(engine, asyncio.get_running_loop(), log, options.max_input_size)
        self._door = FrontDoor(engine, self._calls, log, options.max_input_size)
        self._server = _HostedServer(
            uvicorn.Config(
                self._door,
                http=InferProtocol.with_calls(self._calls),
                ws="none",
                interface="asgi3",
                lifespan="off",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                date_header=False,
                backlog=_BACKLOG,
                timeout_keep_alive=options.keep_alive_s,
            )
        )
        self._serving = asyncio.create_task(self._server.serve([self._listen()]), name="http frontend")
        while not self._server.started and not self._serving.done():  # noqa: ASYNC110 - uvicorn has no event for it; it takes a turn or two of the loop
            await asyncio.sleep(0)
        if self._serving.done():
            self._serving.result()

    async def serving(self) -> None:
        """Import the management routes, now that nobody waits for the server to become ready."""
        if self._door is not None:
            self._door.import_routes()

    def _listen(self) -> socket.socket:
        host = self.options.host or self.context.host
        port = self.options.port
        try:
            family, kind, protocol, _, where = socket.getaddrinfo(
                host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )[0]
            listening = socket.socket(family, kind, protocol)
        except OSError as error:
            raise StartupError(f"cannot listen for HTTP on {host}:{port}: {error.strerror}") from error
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if self.options.reuse_port:
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            listening.bind(where)
            listening.listen(_BACKLOG)
        except OSError as error:
            listening.close()
            raise StartupError(
                f"cannot listen for HTTP on {host}:{port}: {error.strerror}; choose another port or stop what uses it"
            ) from error
        listening.setblocking(False)
        shown = f"[{host}]" if ":" in host else host
        self._address = f"{shown}:{listening.getsockname()[1]}"
        return listening

    async def drain(self) -> None:
        """Stop to accept connections, refuse new requests on those that are open, and wait for the live ones."""
        if self._server is None or self._calls is None or self._serving is None:
            return
        for server in self._server.servers:
            server.close()
        await self._calls.drain()
        while self._server.server_state.tasks:
            await asyncio.wait(set(self._server.server_state.tasks))

    async def stop(self) -> None:
        """Close what is still open."""
        if self._server is None or self._serving is None:
            return
        for connection in set(self._server.server_state.connections):
            if connection.transport is not None:
                connection.transport.abort()
        self._server.should_exit = self._server.force_exit = True
        await self._serving
        self._server = self._serving = None

    def address(self) -> str:
        """Return `host:port` as clients reach it; empty before `start`."""
        return self._address
