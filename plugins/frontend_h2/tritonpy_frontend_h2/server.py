"""Accepts connections and ends them."""

from __future__ import annotations

import asyncio
import logging
import math
import socket
import ssl
from collections.abc import Sequence

from tritonpy import Acceptor, RequestMemory, delivered
from tritonpy_frontend_grpc.connections import ConnectionOptions
from tritonpy_frontend_h2.http2.calls import Calls
from tritonpy_frontend_h2.http2.limits import Limits
from tritonpy_frontend_h2.http2.ping_strikes import PingRules
from tritonpy_frontend_h2.protocol import Http2Protocol
from tritonpy_frontend_h2.watch import Times

_LOG = logging.getLogger(__name__)
_READ_SIZE = 256 * 1024


class Http2Server:
    """Serves `calls` on the running event loop; `tls` encrypts."""

    def __init__(
        self,
        calls: Calls,
        options: ConnectionOptions,
        tls: ssl.SSLContext | None = None,
        log: logging.Logger = _LOG,
        memory: RequestMemory | None = None,
    ) -> None:
        self._log = log
        self.calls = calls
        self.memory = memory or RequestMemory()
        self.limits = Limits()
        self.ping_rules = _ping_rules(options)
        self.times = _times(options)
        self.buffer = memoryview(bytearray(_READ_SIZE))  # what all connections read to, one after the other
        self._most = options.max_connections
        self._tls = tls
        self._open: set[Http2Protocol] = set()
        self._acceptor: Acceptor | None = None
        self._emptied = asyncio.Event()

    def serve(self, sockets: Sequence[socket.socket]) -> None:
        """Accept connections from non-blocking sockets that listen."""
        loop = asyncio.get_running_loop()
        self._acceptor = Acceptor(
            "gRPC", lambda: Http2Protocol(self, loop), self._open, self._log, self._tls, self.times.handshake
        )
        self._acceptor.listen(sockets)

    def accept(self, accepted: socket.socket) -> None:
        """Serve a connection that another listener accepted."""
        assert self._acceptor is not None  # noqa: S101
        self._acceptor.adopt(accepted)

    async def delivered(self) -> None:
        """Return when clients have their answers, or those that have not read nothing."""
        await delivered(lambda: sum([connection.left() for connection in self._open]))

    async def stop(self, grace_s: float) -> None:
        """Accept nothing more, let the open calls end for so long, and close all connections."""
        if self._acceptor is not None:
            self._acceptor.close()
            await self._acceptor.closed()
        for connection in list(self._open):
            connection.finish("")
        await self._emptied_within(grace_s)
        for connection in list(self._open):
            connection.abort()
        await self._emptied_within(None)

    def admit(self, connection: Http2Protocol) -> bool:
        """Count a connection; say whether there may be so many."""
        self._open.add(connection)
        return not 0 < self._most < len(self._open)

    def dismiss(self, connection: Http2Protocol) -> None:
        """Take note that a connection is closed."""
        self._open.discard(connection)
        if not self._open:
            self._emptied.set()

    async def _emptied_within(self, seconds: float | None) -> None:
        if self._open:
            self._emptied.clear()
            try:
                await asyncio.wait_for(self._emptied.wait(), seconds)
            except TimeoutError:
                return


def _ping_rules(options: ConnectionOptions) -> PingRules:
    return PingRules(
        options.http2_min_recv_ping_interval_without_data_ms / 1000,
        options.http2_max_ping_strikes,
        options.keepalive_permit_without_calls,
    )


def _times(options: ConnectionOptions) -> Times:
    return Times(
        options.handshake_timeout_ms / 1000,
        options.keepalive_time_ms / 1000,
        options.keepalive_timeout_ms / 1000,
        options.keepalive_permit_without_calls,
        options.http2_max_pings_without_data,
        options.max_connection_age_ms / 1000 or math.inf,
        options.max_connection_age_grace_ms / 1000 or math.inf,
        options.max_connection_idle_ms / 1000 or math.inf,
    )
