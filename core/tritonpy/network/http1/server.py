"""An HTTP/1.1 server on listening sockets, in the event loop of its owner."""

from __future__ import annotations

import asyncio
import logging
import math
import socket
import ssl
from collections.abc import Sequence
from typing import Any

import uvicorn
from uvicorn.server import ServerState

from tritonpy.network.acceptor import Acceptor
from tritonpy.network.delivery import delivered, unread
from tritonpy.network.http1.connection import HttpConnection
from tritonpy.network.http1.refusal import TOO_MANY_CONNECTIONS

_LATE_S = 0.25  # time for the last connections to read that the server is stopping
_CHECK_S = 0.01
_USED_CHECK_S = 0.05


class _State(ServerState):
    """The state that uvicorn's connections share."""

    accepting = True  # False: new connections are refused


class HttpServer:
    """Serves the ASGI `application` with connections of the class `protocol`.

    `name` is the frontend's name for the log.
    """

    def __init__(
        self,
        name: str,
        application: Any,
        log: logging.Logger,
        protocol: type[HttpConnection] = HttpConnection,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._name = name
        self._log = log
        self._protocol = protocol
        # Only uvicorn's protocol is used, not its logging setup and signal handlers.
        self._config = uvicorn.Config(
            application, http=protocol, ws="none", interface="asgi3", lifespan="off", log_config=None, access_log=False,
            proxy_headers=False, server_header=False, date_header=False,
        )  # fmt: skip
        self._config.load()
        if tls is not None:
            self._config.ssl = tls
        self._loop = asyncio.get_running_loop()
        self.server_state = _State()
        self._acceptor = Acceptor(
            name,
            self.connection,
            self.server_state.connections,
            log,
            tls,
            protocol.limits.head_s,
            TOO_MANY_CONNECTIONS.wire(),
        )

    def serve(self, sockets: Sequence[socket.socket]) -> None:
        """Accept connections from non-blocking listening sockets, and close them at the end."""
        self._acceptor.listen(sockets)

    def accept(self, accepted: socket.socket) -> None:
        """Serve a connection that another listener accepted."""
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
                self._log.info("Timeout %d: Found %d %s service connections", left, count, self._name)
            await asyncio.sleep(_USED_CHECK_S)

    async def answered(self) -> None:
        """Return when the running ASGI requests are finished and clients have read their responses.

        Clients that do not read are not waited for.
        """
        while self.server_state.tasks:
            await asyncio.wait(set(self.server_state.tasks))
        await delivered(lambda: sum([unread(each.transport) for each in self.server_state.connections]))

    async def stop(self, grace_s: float = 0.0) -> None:
        """Close the port, then all connections.

        Requests in flight have up to `grace_s` seconds to finish.
        """
        self.refuse_new_connections()
        connections = self.server_state.connections
        before = set(connections)
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
