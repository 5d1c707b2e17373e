"""The HTTP frontend on the server's event loop."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

from tritonpy import Engine
from tritonpy.frontend import (
    BACKLOG,
    Acceptor,
    ClaimedAddress,
    Evictable,
    Frontend,
    FrontendContext,
    claim_address,
    delivered,
    http_tls_context,
    listen_on_claim,
    listen_on_port,
    unix_path,
    unread,
)
from tritonpy_frontend_http.http_service import HttpService
from tritonpy_frontend_http.options import HttpOptions
from tritonpy_frontend_http.protocol import InferProtocol
from tritonpy_http1 import HttpConnection, HttpLimits, HttpServer

if TYPE_CHECKING:
    from tritonpy.frontend import UnixSocket

Evictable.register(HttpConnection)  # it has the methods, but the library knows nothing of tritonpy


class HttpFrontend(Frontend):
    """Triton's HTTP/REST protocol.

    `InferProtocol` handles inference calls directly. Other requests go to a Litestar application.
    """

    Options = HttpOptions
    options: HttpOptions
    protocols = ("http/1.1",)
    scales = True

    def __init__(self, options: HttpOptions, context: FrontendContext) -> None:
        super().__init__(options, context)
        self._address = ""
        self._socket: UnixSocket | None = None
        self._server: HttpServer | None = None
        self._service: HttpService | None = None

    async def start(self, engine: Engine) -> None:
        """Listen. Raises StartupError if the address is unavailable or a TLS file is invalid."""
        options, log = self.options, self.context.log
        self._service = composition = HttpService(engine, options, self.context)
        protocol = _protocol(composition)
        protocol.limits = HttpLimits.from_settings(options)
        tls = http_tls_context(options.tls, "frontends.http.tls", log) if options.tls.on else None
        server = HttpServer("HTTP", composition.application, log, protocol, tls, Acceptor)
        if self.context.single_port is None:
            server.serve([self._listen()])
        else:
            self._address = self.context.single_port.address
        self._server = server

    def accept(self, accepted: socket.socket) -> None:
        """Serve a connection accepted on a shared port."""
        assert self._server is not None  # noqa: S101
        self._server.accept(accepted)

    def is_encrypted(self) -> bool:
        """Return whether TLS is configured."""
        return self.options.tls.on

    def http_connection(self) -> asyncio.Protocol:
        """Return a new connection for one request that arrived over HTTP/2."""
        assert self._server is not None  # noqa: S101
        return self._server.connection()

    async def serving(self) -> None:
        """Import the management routes, after the server has become ready."""
        if self._service is not None:
            self._service.import_routes()

    def claim(self) -> ClaimedAddress:
        """Reserve the address for several processes. Raises StartupError if it is unavailable."""
        options = self.options
        host = options.host or self.context.host
        if path := unix_path(host):
            from tritonpy.frontend import UnixSocket

            return UnixSocket(path, int(options.socket_mode, 8)).claim(BACKLOG)
        return claim_address("HTTP", host, options.port, reuse=options.reuse_port)

    def _listen(self) -> socket.socket:
        options = self.options
        host = options.host or self.context.host
        claim = self.context.claim
        if claim is not None:
            listening, self._address = listen_on_claim("HTTP", claim, host)
        elif path := unix_path(host):
            from tritonpy.frontend import UnixSocket

            self._socket = UnixSocket(path, int(options.socket_mode, 8))
            listening, self._address = self._socket.listen(BACKLOG), self._socket.address
        else:
            listening, self._address = listen_on_port(
                "HTTP", host, options.port, reuse=options.reuse_port
            )
        return listening

    async def stop_accepting(self, timeout_s: float, limit_s: float) -> None:
        """Refuse new connections with 503, and wait until clients stop using the open ones."""
        if self._server is not None:
            self._server.refuse_new_connections()
            await self._server.unused(timeout_s, self.options.drain_idle_s, limit_s)

    async def drain(self) -> None:
        """Refuse new connections and requests with 503; wait until all responses are delivered."""
        server = self._server
        if server is None or self._service is None:
            return
        server.refuse_new_connections()
        await self._service.calls.drain()
        await server.answered()
        await delivered(
            lambda: sum([unread(each.transport) for each in server.server_state.connections])
        )

    async def stop(self) -> None:
        """Close the remaining connections."""
        server, self._server = self._server, None
        if server is not None:
            await server.stop()
        if self._socket is not None:
            self._socket.remove()

    def address(self) -> str:
        """Return `host:port` or `unix:/path`, the address for clients; empty before `start`."""
        return self._address


def _protocol(composition: HttpService) -> type[InferProtocol]:
    if composition.access is None:
        return InferProtocol.with_calls(composition.calls)
    from tritonpy_frontend_http.guarded_protocol import guarded_protocol

    return guarded_protocol(composition.calls, composition.access)
