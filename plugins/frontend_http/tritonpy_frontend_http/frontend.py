"""The HTTP frontend: uvicorn, hosted on the server's event loop."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING

import uvicorn

from tritonpy import Claimed, Engine, Frontend, FrontendContext, delivered, unix_path, unread
from tritonpy_frontend_http.composition import Composition
from tritonpy_frontend_http.limits import Limits
from tritonpy_frontend_http.listening import (
    BACKLOG,
    claim_address,
    listen_on_claim,
    listen_on_port,
    tls_context,
)
from tritonpy_frontend_http.options import HttpOptions
from tritonpy_frontend_http.protocol import InferProtocol

if TYPE_CHECKING:
    from tritonpy import UnixSocket


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
    scales = True

    def __init__(self, options: HttpOptions, context: FrontendContext) -> None:
        super().__init__(options, context)
        self._address = ""
        self._socket: UnixSocket | None = None
        self._server: _HostedServer | None = None
        self._serving: asyncio.Task[None] | None = None
        self._composition: Composition | None = None

    async def start(self, engine: Engine) -> None:
        """Listen; raises StartupError where the address cannot be had or a TLS file is wrong."""
        options, log = self.options, self.context.log
        self._composition = composition = Composition(engine, options, self.context)
        protocol = _protocol(composition)
        protocol.limits = _limits(options)
        tls = tls_context(options.tls, log) if options.tls.on else None
        self._server = _HostedServer(
            uvicorn.Config(
                composition.application,
                http=protocol,
                ws="none",
                interface="asgi3",
                lifespan="off",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                date_header=False,
                backlog=BACKLOG,
                ssl_context_factory=None if tls is None else lambda _config, _default: tls,
            )
        )
        self._serving = asyncio.create_task(self._server.serve([self._listen()]), name="http frontend")
        while not self._server.started and not self._serving.done():  # noqa: ASYNC110 - uvicorn has no event for it; it takes a turn or two of the loop
            await asyncio.sleep(0)
        if self._serving.done():
            self._serving.result()

    async def serving(self) -> None:
        """Import the management routes, now that nobody waits for the server to become ready."""
        if self._composition is not None:
            self._composition.import_routes()

    def claim(self) -> Claimed:
        """Take the address for several processes. Raises StartupError."""
        options = self.options
        host = options.host or self.context.host
        if path := unix_path(host):
            from tritonpy import UnixSocket

            return UnixSocket(path, int(options.socket_mode, 8)).claim(BACKLOG)
        return claim_address(host, options.port, reuse=options.reuse_port)

    def _listen(self) -> socket.socket:
        options = self.options
        host = options.host or self.context.host
        claim = self.context.claim
        if claim is not None:
            listening, self._address = listen_on_claim(claim, host)
        elif path := unix_path(host):
            from tritonpy import UnixSocket

            self._socket = UnixSocket(path, int(options.socket_mode, 8))
            listening, self._address = self._socket.listen(BACKLOG), self._socket.address
        else:
            listening, self._address = listen_on_port(host, options.port, reuse=options.reuse_port)
        return listening

    async def drain(self) -> None:
        """Stop to accept connections, refuse new requests on those that are open, and wait for the live ones, and until clients have their answers."""
        if self._server is None or self._composition is None or self._serving is None:
            return
        for server in self._server.servers:
            server.close()
        await self._composition.calls.drain()
        while self._server.server_state.tasks:
            await asyncio.wait(set(self._server.server_state.tasks))
        await delivered(self._left)

    def _left(self) -> int:
        connections = () if self._server is None else self._server.server_state.connections
        return sum([unread(each.transport) for each in connections if each.transport is not None])

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
        if self._socket is not None:
            self._socket.remove()

    def address(self) -> str:
        """Return `host:port` or `unix:/path` as clients reach it; empty before `start`."""
        return self._address


def _protocol(composition: Composition) -> type[InferProtocol]:
    if composition.access is None:
        return InferProtocol.with_calls(composition.calls)
    from tritonpy_frontend_http.guarded_protocol import guarded_protocol

    return guarded_protocol(composition.calls, composition.access)


def _limits(options: HttpOptions) -> Limits:
    return Limits(
        options.keep_alive_s,
        options.head_timeout_s,
        options.body_timeout_s,
        options.max_head_size,
        options.max_headers,
        options.max_connections,
    )
