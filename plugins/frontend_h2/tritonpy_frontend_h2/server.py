"""The HTTP/2 server: accepts and closes connections."""

from __future__ import annotations

import asyncio
import logging
import math
import socket
import ssl
from collections.abc import Sequence

from tritonpy import Acceptor, RequestMemory, delivered
from tritonpy_frontend_grpc.connection_options import ConnectionOptions
from tritonpy_frontend_h2.http2.calls import Http2Calls
from tritonpy_frontend_h2.http2.limits import Http2Limits
from tritonpy_frontend_h2.http2.ping_strikes import PingRules
from tritonpy_frontend_h2.protocol import Http2Protocol
from tritonpy_frontend_h2.timeouts import TimeoutSettings

_LOG = logging.getLogger(__name__)
_READ_SIZE = 256 * 1024


class Http2Server:
    """Serves `calls` on the running event loop, encrypted if `tls` is set."""

    def __init__(
        self,
        calls: Http2Calls,
        options: ConnectionOptions,
        tls: ssl.SSLContext | None = None,
        log: logging.Logger = _LOG,
        memory: RequestMemory | None = None,
    ) -> None:
        self._log = log
        self.calls = calls
        self.memory = memory or RequestMemory()
        self.limits = Http2Limits()
        self.ping_rules = _ping_rules(options)
        self.timeout_settings = _timeout_settings(options)
        self.buffer = memoryview(bytearray(_READ_SIZE))  # read buffer shared by all connections
        self._max_connections = options.max_connections
        self._tls = tls
        self._connections: set[Http2Protocol] = set()
        self._acceptor: Acceptor | None = None
        self._is_empty = asyncio.Event()

    def serve(self, sockets: Sequence[socket.socket]) -> None:
        """Accept connections from non-blocking listening sockets."""
        loop = asyncio.get_running_loop()
        self._acceptor = Acceptor(
            "gRPC",
            lambda: Http2Protocol(self, loop),
            self._connections,
            self._log,
            self._tls,
            self.timeout_settings.handshake,
        )
        self._acceptor.listen(sockets)

    def accept(self, accepted: socket.socket) -> None:
        """Serve a connection accepted by another listener."""
        assert self._acceptor is not None  # noqa: S101
        self._acceptor.adopt(accepted)

    async def delivered(self) -> None:
        """Wait until all clients have read their responses or have stopped reading."""
        await delivered(lambda: sum([connection.unread_bytes() for connection in self._connections]))

    async def stop(self, grace_s: float) -> None:
        """Stop accepting, wait up to `grace_s` for open calls, and close all connections."""
        if self._acceptor is not None:
            self._acceptor.close()
            await self._acceptor.closed()
        for connection in list(self._connections):
            connection.finish("")
        await self._wait_until_empty(grace_s)
        for connection in list(self._connections):
            connection.abort()
        await self._wait_until_empty(None)

    def admit(self, connection: Http2Protocol) -> bool:
        """Add a connection; return whether the limit allows it."""
        self._connections.add(connection)
        return not 0 < self._max_connections < len(self._connections)

    def remove(self, connection: Http2Protocol) -> None:
        """Remove a closed connection."""
        self._connections.discard(connection)
        if not self._connections:
            self._is_empty.set()

    async def _wait_until_empty(self, seconds: float | None) -> None:
        if self._connections:
            self._is_empty.clear()
            try:
                await asyncio.wait_for(self._is_empty.wait(), seconds)
            except TimeoutError:
                return


def _ping_rules(options: ConnectionOptions) -> PingRules:
    return PingRules(
        options.http2_min_recv_ping_interval_without_data_ms / 1000,
        options.http2_max_ping_strikes,
        options.keepalive_permit_without_calls,
    )


def _timeout_settings(options: ConnectionOptions) -> TimeoutSettings:
    return TimeoutSettings(
        options.handshake_timeout_ms / 1000,
        options.keepalive_time_ms / 1000,
        options.keepalive_timeout_ms / 1000,
        options.keepalive_permit_without_calls,
        options.http2_max_pings_without_data,
        options.max_connection_age_ms / 1000 or math.inf,
        options.max_connection_age_grace_ms / 1000 or math.inf,
        options.max_connection_idle_ms / 1000 or math.inf,
    )
