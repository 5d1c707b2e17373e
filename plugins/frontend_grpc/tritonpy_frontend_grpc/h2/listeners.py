"""The listening sockets of the gRPC frontend, their TLS context, and the HTTP/2 server."""

from __future__ import annotations

import errno
import logging
import math
import socket
import ssl
from collections.abc import Sequence
from typing import Any, NamedTuple

from tritonpy.frontend import Acceptor, Claim, Evictable, RequestMemory, TlsOptions, delivered
from tritonpy_frontend_grpc.addresses import format_host, listen_error
from tritonpy_frontend_grpc.options import ConnectionOptions
from tritonpy_http2 import Http2Calls, Http2Protocol, Http2Server, PingRules, TimeoutSettings

BACKLOG = 2048
_FAMILIES = (socket.AF_INET, socket.AF_INET6)

Evictable.register(Http2Protocol)  # it has the methods, but the library knows nothing of tritonpy


class Http2Listener:
    """Accepts connections and serves `calls` on them, encrypted if `tls` is set."""

    def __init__(
        self,
        calls: Http2Calls,
        options: ConnectionOptions,
        tls: ssl.SSLContext | None,
        log: logging.Logger,
        memory: RequestMemory,
    ) -> None:
        self._server = Http2Server(
            calls,
            ping_rules=_ping_rules(options),
            timeouts=_timeout_settings(options),
            max_connections=options.max_connections,
            make_account=memory.client,
        )
        self._acceptor = Acceptor(
            "gRPC",
            self._server.make_protocol,
            self._server.connections,
            log,
            tls,
            self._server.timeouts.handshake,
        )

    def serve(self, sockets: Sequence[socket.socket]) -> None:
        """Accept connections from non-blocking listening sockets."""
        self._acceptor.listen(sockets)

    def accept(self, accepted: socket.socket) -> None:
        """Serve a connection accepted by another listener."""
        self._acceptor.adopt(accepted)

    async def delivered(self) -> None:
        """Wait until all clients have read their responses or have stopped reading."""
        await delivered(self._server.unread_bytes)

    async def stop(self, grace_s: float) -> None:
        """Stop accepting, wait up to `grace_s` for open calls, and close all connections."""
        self._acceptor.close()
        await self._acceptor.closed()
        await self._server.stop(grace_s)


class Listening(NamedTuple):
    """Listening sockets, and the address for clients."""

    sockets: list[socket.socket]
    address: str


def listen_on_claim(claim: Claim, host: str) -> Listening:
    """Listen on an address shared by several processes. Raises StartupError."""
    if claim.listening is None:
        return listen_on_port(host, claim.port, reuse=True)
    claim.listening.setblocking(False)
    return Listening([claim.listening], claim.address)


def listen_on_port(host: str, port: int, *, reuse: bool) -> Listening:
    """Listen on all available addresses of a host, on one port; port 0 picks a free one.

    Raises StartupError.
    """
    name = format_host(host)
    sockets: list[socket.socket] = []
    refusal: OSError | None = None
    free = port
    try:
        found = dict.fromkeys(
            socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        )
    except OSError as error:
        raise listen_error(name, port, error) from error
    for family, kind, protocol, _, where in found:
        if family not in _FAMILIES:
            continue
        try:
            sockets.append(
                _bound(family, kind, protocol, (where[0], free, *where[2:]), reuse=reuse)
            )
        except OSError as error:
            refusal = refusal or error
        else:
            free = sockets[0].getsockname()[1]
    if not sockets:
        raise listen_error(
            name, port, refusal or OSError(errno.EADDRNOTAVAIL, "no address")
        ) from refusal
    return Listening(sockets, f"{name}:{free}")


def _bound(
    family: int, kind: int, protocol: int, where: tuple[Any, ...], *, reuse: bool
) -> socket.socket:
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if reuse:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listening.bind(where)
        listening.listen(BACKLOG)
    except OSError:
        listening.close()
        raise
    listening.setblocking(False)
    return listening


def tls_context(options: TlsOptions, log: logging.Logger) -> ssl.SSLContext | None:
    """Return the TLS context of the port, None without TLS.

    Raises StartupError that names an invalid file.

    The files are checked at every handshake, so renewed files take effect immediately.
    """
    if not options.on:
        return None
    from tritonpy.frontend import TlsFiles

    return TlsFiles(options, "frontends.grpc.tls", log).reloading_context(_speak_http2)


def _speak_http2(context: ssl.SSLContext) -> None:
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["h2"])


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
