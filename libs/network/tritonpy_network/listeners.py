"""Listening sockets of HTTP servers, and their TLS context.

`protocol` is the name of what the port serves, for error texts.
"""

from __future__ import annotations

import logging
import socket
import ssl

from tritonpy_network.frontend_options import HttpTlsOptions
from tritonpy_network.port_claim import Claim, ClaimedAddress, claim_port
from tritonpy_network.tls_files import TlsFiles
from tritonpy_types.errors import StartupError

BACKLOG = 2048


def claim_address(protocol: str, host: str, port: int, *, reuse: bool) -> ClaimedAddress:
    """Reserve a port (0: any free one) for several processes. Raises StartupError."""
    try:
        return claim_port(host, port, reuse=reuse)
    except OSError as error:
        raise _listen_error(protocol, host, port, error) from error


def listen_on_claim(protocol: str, claim: Claim, host: str) -> tuple[socket.socket, str]:
    """Return a listening socket for a reserved address, and the address. Raises StartupError."""
    if claim.listening is None:
        return listen_on_port(protocol, host, claim.port, reuse=True)
    claim.listening.setblocking(False)
    return claim.listening, claim.address


def listen_on_port(
    protocol: str, host: str, port: int, *, reuse: bool
) -> tuple[socket.socket, str]:
    """Return a listening socket and its `host:port`; port 0 picks a free one.

    Raises StartupError.
    """
    try:
        family, kind, number, _, socket_address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, number)
    except OSError as error:
        raise StartupError(
            f"cannot listen for {protocol} on {host}:{port}: {error.strerror}"
        ) from error
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if reuse:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listening.bind(socket_address)
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        raise _listen_error(protocol, host, port, error) from error
    listening.setblocking(False)
    printed_host = f"[{host}]" if ":" in host else host
    return listening, f"{printed_host}:{listening.getsockname()[1]}"


def _listen_error(protocol: str, host: str, port: int, error: OSError) -> StartupError:
    return StartupError(
        f"cannot listen for {protocol} on {host}:{port}: {error.strerror}; choose another port or "
        "stop the process that uses it"
    )


def http_tls_context(options: HttpTlsOptions, section: str, log: logging.Logger) -> ssl.SSLContext:
    """Return the TLS context of a port. `section` is the path of `options` in server.yaml.

    The files are checked at every handshake, so renewed files take effect immediately. Raises
    StartupError that names an invalid file.
    """
    versions = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}

    def configure(context: ssl.SSLContext) -> None:
        context.minimum_version = versions[options.minimum_version]
        context.set_alpn_protocols(["http/1.1"])

    return TlsFiles(options, section, log).reloading_context(configure)
