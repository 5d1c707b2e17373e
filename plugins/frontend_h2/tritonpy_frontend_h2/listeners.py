"""Listening sockets of the gRPC frontend, and their TLS context."""

from __future__ import annotations

import errno
import logging
import socket
import ssl
from typing import Any, NamedTuple

from tritonpy import Claim, TlsOptions
from tritonpy_frontend_grpc.addresses import format_host, listen_error

BACKLOG = 2048
_FAMILIES = (socket.AF_INET, socket.AF_INET6)


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
        found = dict.fromkeys(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE))
    except OSError as error:
        raise listen_error(name, port, error) from error
    for family, kind, protocol, _, where in found:
        if family not in _FAMILIES:
            continue
        try:
            sockets.append(_bound(family, kind, protocol, (where[0], free, *where[2:]), reuse=reuse))
        except OSError as error:
            refusal = refusal or error
        else:
            free = sockets[0].getsockname()[1]
    if not sockets:
        raise listen_error(name, port, refusal or OSError(errno.EADDRNOTAVAIL, "no address")) from refusal
    return Listening(sockets, f"{name}:{free}")


def _bound(family: int, kind: int, protocol: int, where: tuple[Any, ...], *, reuse: bool) -> socket.socket:
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
    from tritonpy import TlsFiles

    return TlsFiles(options, "frontends.grpc.tls", log).reloading_context(_speak_http2)


def _speak_http2(context: ssl.SSLContext) -> None:
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["h2"])
