"""An HTTP/1.1 server on listening sockets, in the event loop of its owner."""

from __future__ import annotations

import asyncio
import logging
import math
import socket
import ssl
from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol

import uvicorn
from uvicorn.server import ServerState

from tritonpy_http1.connection import HttpConnection
from tritonpy_http1.refusal import TOO_MANY_CONNECTIONS

_LATE_S = 0.25  # time for the last connections to read that the server is stopping
_CHECK_S = 0.01
_USED_CHECK_S = 0.05


class _State(ServerState):
    """The state that uvicorn's connections share."""

    accepting = True  # False: new connections are refused


class ConnectionAcceptor(Protocol):
    """Accepts the connections of listening sockets on the running event loop."""

    def listen(self, sockets: Sequence[socket.socket]) -> None:
        """Accept from `sockets`, which are non-blocking and listening. `close` closes them."""

    def adopt(self, accepted: socket.socket) -> None:
        """Serve a connection that another listener accepted."""

    def close(self) -> None:
        """Stop listening, after the connections that the kernel has completed are accepted."""

    async def closed(self) -> None:
        """Return when no connection is in its handshake. It is called after `close`."""


class MakeAcceptor(Protocol):
    """Returns an acceptor for a server."""

    def __call__(
        self,
        name: str,
        make: Callable[[], asyncio.BaseProtocol],
        connections: Collection[object],
        log: logging.Logger,
        tls: ssl.SSLContext | None,
        handshake_s: float,
        refusal: bytes,
        /,
    ) -> ConnectionAcceptor:
        """Return an acceptor whose connections have the protocol objects that `make` returns.

        `connections` are the open ones. `refusal` is the response to a connection that cannot be
        served, and `handshake_s` the timeout of a handshake with `tls`.
        """


class HttpServer:
    """Serves the ASGI `application` with connections of the class `protocol`.

    `name` is the server's name for the log. `make_acceptor` makes the acceptor for `serve` and
    `accept`. Without it the server's only connections are those of `connection`.
    """

    def __init__(
        self,
        name: str,
        application: Any,
        log: logging.Logger,
        protocol: type[HttpConnection] = HttpConnection,
        tls: ssl.SSLContext | None = None,
        make_acceptor: MakeAcceptor | None = None,
    ) -> None:
        self._name = name
        self._log = log
        self._protocol = protocol
        # Only uvicorn's protocol is used, not its logging setup and signal handlers.
        self._config = uvicorn.Config(
            application, http=protocol, ws="none", interface="asgi3", lifespan="off",
            log_config=None, access_log=False,
            proxy_headers=False, server_header=False, date_header=False,
        )  # fmt: skip
        self._config.load()
        if tls is not None:
            self._config.ssl = tls
        self._loop = asyncio.get_running_loop()
        self.server_state = _State()
        self._acceptor = (
            None
            if make_acceptor is None
            else make_acceptor(
                name,
                self.connection,
                self.server_state.connections,
                log,
                tls,
                protocol.limits.head_s,
                TOO_MANY_CONNECTIONS.wire(),
            )
        )

    def serve(self, sockets: Sequence[socket.socket]) -> None:
        """Accept connections from non-blocking listening sockets, and close them at the end."""
        assert self._acceptor is not None  # noqa: S101
        self._acceptor.listen(sockets)

    def accept(self, accepted: socket.socket) -> None:
        """Serve a connection that another listener accepted."""
        assert self._acceptor is not None  # noqa: S101
        self._acceptor.adopt(accepted)

    def connection(self) -> HttpConnection:
        """Return a new protocol object for a transport of the caller."""
        return self._protocol(config=self._config, server_state=self.server_state, app_state={})

    def refuse_new_connections(self) -> None:
        """Respond with 503 on new connections. Open connections are served."""
        self.server_state.accepting = False

    async def unused(self, timeout_s: float, idle_s: float, limit_s: float) -> None:
        """Return when no client has used its connection for `idle_s` seconds, or after `limit_s`.

        `timeout_s` is the exit timeout for log lines.
        """
        connections: Any = self.server_state.connections
        started_s, logged = self._loop.time(), -1
        while count := sum([connection.is_used(idle_s) for connection in connections]):
            passed = self._loop.time() - started_s
            if passed >= limit_s:
                return
            if int(passed) > logged:
                logged = int(passed)
                left = int(timeout_s) - logged
                self._log.info(
                    "Timeout %d: Found %d %s service connections", left, count, self._name
                )
            await asyncio.sleep(_USED_CHECK_S)

    async def answered(self) -> None:
        """Return when the running ASGI requests are finished."""
        while self.server_state.tasks:
            await asyncio.wait(set(self.server_state.tasks))

    async def stop(self, grace_s: float = 0.0) -> None:
        """Close the port, then all connections.

        Requests in flight have up to `grace_s` seconds to finish.
        """
        self.refuse_new_connections()
        connections = self.server_state.connections
        before = set(connections)
        if self._acceptor is not None:
            self._acceptor.close()
            await self._acceptor.closed()
        if grace_s and self.server_state.tasks:
            await asyncio.wait(set(self.server_state.tasks), timeout=grace_s)
        for connection in before & connections:
            connection.transport.abort()
        await self._closed_within(_LATE_S)
        for connection in list(connections):
            connection.transport.abort()
        await self._closed_within(math.inf)

    async def _closed_within(self, seconds: float) -> None:
        connections, deadline = self.server_state.connections, self._loop.time() + seconds
        while connections and self._loop.time() < deadline:  # noqa: ASYNC110 - uvicorn has no event for this
            await asyncio.sleep(_CHECK_S)
