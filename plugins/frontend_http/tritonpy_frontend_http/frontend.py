"""The HTTP frontend: uvicorn, hosted on the server's event loop."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Annotated

import uvicorn
from msgspec import Meta

from tritonpy import (
    ApiCategory,
    ByteSize,
    Engine,
    Frontend,
    FrontendContext,
    Options,
    Restriction,
    Room,
    check_restrictions,
    unix_path,
)
from tritonpy_frontend_http.front_door import FrontDoor
from tritonpy_frontend_http.infer_calls import InferCalls
from tritonpy_frontend_http.limits import Limits
from tritonpy_frontend_http.listening import BACKLOG, HttpTlsOptions, listen_on_port, listen_on_socket, tls_context
from tritonpy_frontend_http.protocol import InferProtocol
from tritonpy_frontend_http.telling import TellingDoor

if TYPE_CHECKING:
    from tritonpy import UnixSocket
    from tritonpy_frontend_http.guarded import Guard


class HttpOptions(Options, frozen=True):
    """The options under `frontends: http:` of server.yaml."""

    port: Annotated[int, Meta(ge=0, le=65535, description="TCP port; 0 picks a free one")] = 8000
    host: Annotated[str | None, Meta(description="Address to listen on instead of the server's, or unix:/path")] = None
    reuse_port: Annotated[bool, Meta(description="Let several servers listen on the port (SO_REUSEPORT)")] = False
    socket_mode: Annotated[
        str, Meta(pattern="^0?[0-7]{3}$", description="Who may connect to unix:/path, as for chmod")
    ] = "0660"
    tls: Annotated[HttpTlsOptions, Meta(description="Certificate and key that encrypt the port")] = HttpTlsOptions()
    max_input_size: Annotated[
        ByteSize, Meta(gt=0, description="Largest JSON, JSON tensor, raw binary body and decompressed body, in bytes")
    ] = 64 * 1024 * 1024
    max_waiting_answers: Annotated[
        int, Meta(ge=1, description="Answers of one generate call that may wait for a slow client")
    ] = 64
    max_waiting_bytes: Annotated[
        ByteSize, Meta(gt=0, description="Bytes of such answers that may wait, the last of them not counted")
    ] = 256 * 1024
    keep_alive_s: Annotated[int, Meta(ge=0, description="Seconds after which an idle connection is closed")] = 75
    head_timeout_s: Annotated[
        float, Meta(gt=0, description="Seconds within which the head of a request must arrive")
    ] = 60
    body_timeout_s: Annotated[
        float, Meta(gt=0, description="Seconds that a body may stand still, or a client that reads its answer")
    ] = 300
    max_head_size: Annotated[ByteSize, Meta(gt=0, description="Largest request line and headers, in bytes")] = 64 * 1024
    max_headers: Annotated[int, Meta(gt=0, description="Most headers of a request")] = 1000
    max_connections: Annotated[
        int, Meta(ge=0, description="Most connections at a time, 0 for any number; one more is answered 503")
    ] = 0
    restricted_apis: Annotated[
        tuple[Restriction, ...], Meta(description="Groups of calls that need a header with a secret value")
    ] = ()
    header_forward_pattern: Annotated[
        str, Meta(description="Headers whose name it matches, in any case, become parameters of inference requests")
    ] = ""

    def __post_init__(self) -> None:
        """Raise ValueError for what no single option shows."""
        check_restrictions(self.restricted_apis, "api")
        if self.header_forward_pattern:
            from tritonpy import compile_pattern

            compile_pattern(self.header_forward_pattern)


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
        self._socket: UnixSocket | None = None
        self._server: _HostedServer | None = None
        self._serving: asyncio.Task[None] | None = None
        self._calls: InferCalls | None = None
        self._door: FrontDoor | None = None

    async def start(self, engine: Engine) -> None:
        """Listen; raises StartupError where the address cannot be had or a TLS file is wrong."""
        options, log = self.options, self.context.log
        guard = self._guard()
        calls = InferCalls if guard is None else guard.calls
        self._calls = calls(engine, asyncio.get_running_loop(), log, options.max_input_size, self.context.tracer)
        make_room = partial(Room, options.max_waiting_answers, options.max_waiting_bytes)
        self._door = FrontDoor(engine, self._calls, log, options.max_input_size, make_room)
        protocol = InferProtocol.with_calls(self._calls) if guard is None else guard.protocol(self._calls)
        protocol.limits = _limits(options)
        tls = tls_context(options.tls, log) if options.tls.on else None
        self._server = _HostedServer(
            uvicorn.Config(
                TellingDoor(self._door if guard is None else guard.door(self._door), log),
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
        if self._door is not None:
            self._door.import_routes()

    def _guard(self) -> Guard | None:
        options, gatekeeper, kept_headers = self.options, self.context.gatekeeper, self.context.kept_headers
        if not (options.restricted_apis or options.header_forward_pattern or gatekeeper or kept_headers):
            return None
        from tritonpy_frontend_http.access import HttpAccess
        from tritonpy_frontend_http.guarded import Guard

        pattern, note = options.header_forward_pattern, self._refusals() if options.restricted_apis else None
        return Guard(HttpAccess(options.restricted_apis, pattern, gatekeeper, kept_headers, note))

    def _refusals(self) -> Callable[[ApiCategory], None]:
        from tritonpy import Refusals

        return Refusals(self.context.metrics, "http", self.context.log).note

    def _listen(self) -> socket.socket:
        options = self.options
        host = options.host or self.context.host
        if path := unix_path(host):
            from tritonpy import UnixSocket

            self._socket = UnixSocket(path, int(options.socket_mode, 8))
            listening, self._address = listen_on_socket(self._socket)
        else:
            listening, self._address = listen_on_port(host, options.port, reuse=options.reuse_port)
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
        if self._socket is not None:
            self._socket.remove()

    def address(self) -> str:
        """Return `host:port` or `unix:/path` as clients reach it; empty before `start`."""
        return self._address


def _limits(options: HttpOptions) -> Limits:
    return Limits(
        options.keep_alive_s,
        options.head_timeout_s,
        options.body_timeout_s,
        options.max_head_size,
        options.max_headers,
        options.max_connections,
    )
