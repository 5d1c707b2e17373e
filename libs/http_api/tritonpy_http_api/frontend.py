"""The base class of frontends that speak Triton's HTTP protocol."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, ClassVar

from tritonpy import Engine, Options
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
from tritonpy_http1 import HttpConnection, HttpLimits, HttpServer
from tritonpy_http_api.http_service import HttpService
from tritonpy_http_api.options import HttpApiOptions
from tritonpy_http_api.protocol import InferProtocol

if TYPE_CHECKING:
    from tritonpy.frontend import UnixSocket
    from tritonpy_http_api.dialect import Dialect

Evictable.register(HttpConnection)  # it has the methods, but the library knows nothing of tritonpy


class HttpApiFrontend(Frontend):
    """Triton's HTTP/REST protocol on a port.

    `InferProtocol` handles inference calls directly. Other requests go to a Litestar application.
    A subclass sets `section`, its name in server.yaml, `title`, its name in errors, and
    `service_name`, Triton's name in the log when it is ready. It may return a dialect for its paths
    and headers.
    """

    Options: ClassVar[type[Options]] = HttpApiOptions
    options: HttpApiOptions
    section: ClassVar[str] = "http"
    title: ClassVar[str] = "HTTP"
    service_name: ClassVar[str] = "HTTPService"

    def __init__(self, options: HttpApiOptions, context: FrontendContext) -> None:
        super().__init__(options, context)
        self._address = ""
        self._socket: UnixSocket | None = None
        self._server: HttpServer | None = None
        self._service: HttpService | None = None

    async def start(self, engine: Engine) -> None:
        """Listen. Raises StartupError if the address is unavailable or a TLS file is invalid."""
        options, log = self.options, self.context.log
        self._service = service = HttpService(engine, options, self.context)
        dialect = self.make_dialect(engine, service)
        protocol = _protocol(service, dialect)
        protocol.limits = HttpLimits.from_settings(options)
        tls = None
        if options.tls.on:
            tls = http_tls_context(options.tls, f"frontends.{self.section}.tls", log)
        application = service.serve_with(dialect)
        server = HttpServer(self.title, application, log, protocol, tls, Acceptor)
        if self.context.single_port is None:
            server.serve([self._listen()])
        else:
            self._address = self.context.single_port.address
        self._server = server

    def make_dialect(self, engine: Engine, service: HttpService) -> Dialect | None:
        """Return the paths and headers of this frontend; None for Triton's own."""
        return None

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
        self.context.log.info("Started %s at %s", self.service_name, self._address)

    def claim(self) -> ClaimedAddress:
        """Reserve the address for several processes. Raises StartupError if it is unavailable."""
        options = self.options
        host = options.host or self.context.host
        if path := unix_path(host):
            from tritonpy.frontend import UnixSocket

            return UnixSocket(path, int(options.socket_mode, 8)).claim(BACKLOG)
        return claim_address(self.title, host, options.port, reuse=options.reuse_port)

    def _listen(self) -> socket.socket:
        options = self.options
        host = options.host or self.context.host
        claim = self.context.claim
        if claim is not None:
            listening, self._address = listen_on_claim(self.title, claim, host)
        elif path := unix_path(host):
            from tritonpy.frontend import UnixSocket

            self._socket = UnixSocket(path, int(options.socket_mode, 8))
            listening, self._address = self._socket.listen(BACKLOG), self._socket.address
        else:
            listening, self._address = listen_on_port(
                self.title, host, options.port, reuse=options.reuse_port
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


def _protocol(service: HttpService, dialect: Dialect | None) -> type[InferProtocol]:
    if dialect is not None:
        from tritonpy_http_api.dialect_protocol import dialect_protocol

        return dialect_protocol(service.calls, service.access, dialect)
    if service.access is None:
        return InferProtocol.with_calls(service.calls)
    from tritonpy_http_api.guarded_protocol import guarded_protocol

    return guarded_protocol(service.calls, service.access)
