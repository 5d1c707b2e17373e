"""Where the server listens: a TCP port or a Unix domain socket, encrypted or not."""

from __future__ import annotations

import logging
import socket
import ssl
from typing import TYPE_CHECKING

from tritonpy import Claim, Claimed, StartupError, claim_port

if TYPE_CHECKING:
    from tritonpy_frontend_http.tls_options import HttpTlsOptions

BACKLOG = 2048


def claim_address(host: str, port: int, *, reuse: bool) -> Claimed:
    """Take a port, 0 for a free one, for several processes that will listen on it. Raises StartupError."""
    try:
        return claim_port(host, port, reuse=reuse)
    except OSError as error:
        raise _taken(host, port, error) from error


def listen_on_claim(claim: Claim, host: str) -> tuple[socket.socket, str]:
    """Return a socket that listens where other processes do too, and the address. Raises StartupError."""
    if claim.listening is None:
        return listen_on_port(host, claim.port, reuse=True)
    claim.listening.setblocking(False)
    return claim.listening, claim.address


def listen_on_port(host: str, port: int, *, reuse: bool) -> tuple[socket.socket, str]:
    """Return a socket that listens, and `host:port` as clients reach it; port 0 takes a free one. Raises StartupError."""
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, protocol)
    except OSError as error:
        raise StartupError(f"cannot listen for HTTP on {host}:{port}: {error.strerror}") from error
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if reuse:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listening.bind(where)
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        raise _taken(host, port, error) from error
    listening.setblocking(False)
    shown = f"[{host}]" if ":" in host else host
    return listening, f"{shown}:{listening.getsockname()[1]}"


def _taken(host: str, port: int, error: OSError) -> StartupError:
    return StartupError(
        f"cannot listen for HTTP on {host}:{port}: {error.strerror}; choose another port or stop what uses it"
    )


def tls_context(options: HttpTlsOptions, log: logging.Logger) -> ssl.SSLContext:
    """Return what encrypts the port. Raises StartupError with the file that is wrong.

    The files are looked at for every handshake: new ones are used from then on.
    """
    from tritonpy import TlsFiles

    versions = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}

    def configure(context: ssl.SSLContext) -> None:
        context.minimum_version = versions[options.minimum_version]
        context.set_alpn_protocols(["http/1.1"])

    return TlsFiles(options, "frontends.http.tls", log).renewing_context(configure)
