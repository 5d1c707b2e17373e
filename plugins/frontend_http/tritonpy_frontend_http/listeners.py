"""Listening sockets of the HTTP frontend, and their TLS context."""

from __future__ import annotations

import logging
import socket
import ssl
from typing import TYPE_CHECKING

from tritonpy import StartupError
from tritonpy.frontend import Claim, ClaimedAddress, claim_port

if TYPE_CHECKING:
    from tritonpy_frontend_http.tls_options import HttpTlsOptions

BACKLOG = 2048


def claim_address(host: str, port: int, *, reuse: bool) -> ClaimedAddress:
    """Reserve a port (0: any free one) for several processes. Raises StartupError."""
    try:
        return claim_port(host, port, reuse=reuse)
    except OSError as error:
        raise _listen_error(host, port, error) from error


def listen_on_claim(claim: Claim, host: str) -> tuple[socket.socket, str]:
    """Return a listening socket for a reserved address, and the address. Raises StartupError."""
    if claim.listening is None:
        return listen_on_port(host, claim.port, reuse=True)
    claim.listening.setblocking(False)
    return claim.listening, claim.address


def listen_on_port(host: str, port: int, *, reuse: bool) -> tuple[socket.socket, str]:
    """Return a listening socket and its `host:port`; port 0 picks a free one.

    Raises StartupError.
    """
    try:
        family, kind, protocol, _, socket_address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, protocol)
    except OSError as error:
        raise StartupError(f"cannot listen for HTTP on {host}:{port}: {error.strerror}") from error
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if reuse:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listening.bind(socket_address)
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        raise _listen_error(host, port, error) from error
    listening.setblocking(False)
    printed_host = f"[{host}]" if ":" in host else host
    return listening, f"{printed_host}:{listening.getsockname()[1]}"


def _listen_error(host: str, port: int, error: OSError) -> StartupError:
    return StartupError(
        f"cannot listen for HTTP on {host}:{port}: {error.strerror}; choose another port or stop "
        "the process that uses it"
    )


def tls_context(options: HttpTlsOptions, log: logging.Logger) -> ssl.SSLContext:
    """Return the TLS context of the port. Raises StartupError that names an invalid file.

    The files are checked at every handshake, so renewed files take effect immediately.
    """
    from tritonpy.frontend import TlsFiles

    versions = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}

    def configure(context: ssl.SSLContext) -> None:
        context.minimum_version = versions[options.minimum_version]
        context.set_alpn_protocols(["http/1.1"])

    return TlsFiles(options, "frontends.http.tls", log).reloading_context(configure)
