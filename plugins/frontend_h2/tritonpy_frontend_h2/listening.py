"""Where the server listens: TCP ports or a Unix domain socket, encrypted or not."""

from __future__ import annotations

import errno
import logging
import socket
import ssl
from typing import Any, NamedTuple

from tritonpy import Claim, TlsOptions
from tritonpy_frontend_grpc.addresses import name_of, taken

BACKLOG = 2048
_FAMILIES = (socket.AF_INET, socket.AF_INET6)


class Listening(NamedTuple):
    """Sockets that listen, and the address as clients reach it."""

    sockets: list[socket.socket]
    address: str


def listen_on_claim(claim: Claim, host: str) -> Listening:
    """Listen where other processes do too. Raises StartupError."""
    if claim.listening is None:
        return listen_on_port(host, claim.port, reuse=True)
    claim.listening.setblocking(False)
    return Listening([claim.listening], claim.address)


def listen_on_port(host: str, port: int, *, reuse: bool) -> Listening:
    """Listen on all addresses of a host that can be had, on one port; port 0 takes a free one. Raises StartupError."""
    name = name_of(host)
    sockets: list[socket.socket] = []
    refusal: OSError | None = None
    free = port
    try:
        found = dict.fromkeys(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE))
    except OSError as error:
        raise taken(name, port, error) from error
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
        raise taken(name, port, refusal or OSError(errno.EADDRNOTAVAIL, "no address")) from refusal
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
    """Return what encrypts the port, None where nothing is to. Raises StartupError with the file that is wrong.

    The files are looked at for every handshake: new ones are used from then on.
    """
    if not options.on:
        return None
    from tritonpy import TlsFiles

    return TlsFiles(options, "frontends.grpc.tls", log).renewing_context(_speak_http2)


def _speak_http2(context: ssl.SSLContext) -> None:
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["h2"])
