"""Where the server listens: a TCP port or a Unix domain socket, encrypted or not."""

from __future__ import annotations

import logging
import socket
import ssl
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta

from tritonpy import StartupError, TlsOptions

if TYPE_CHECKING:
    from tritonpy import UnixSocket

BACKLOG = 2048


class HttpTlsOptions(TlsOptions, frozen=True):
    """The section `tls` of `frontends: http:`."""

    minimum_version: Annotated[Literal["TLSv1.2", "TLSv1.3"], Meta(description="Oldest version that is spoken")] = (
        "TLSv1.2"
    )


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
        raise StartupError(
            f"cannot listen for HTTP on {host}:{port}: {error.strerror}; choose another port or stop what uses it"
        ) from error
    listening.setblocking(False)
    shown = f"[{host}]" if ":" in host else host
    return listening, f"{shown}:{listening.getsockname()[1]}"


def listen_on_socket(file: UnixSocket) -> tuple[socket.socket, str]:
    """Return a socket that listens, and its address, `unix:/path`. Raises StartupError."""
    listening = socket.socket(socket.AF_UNIX)
    try:
        with file.claimed() as path:
            listening.bind(path)
            listening.listen(BACKLOG)
    except BaseException:
        listening.close()
        raise
    listening.setblocking(False)
    return listening, file.address


def tls_context(options: HttpTlsOptions, log: logging.Logger) -> ssl.SSLContext:
    """Return what encrypts the port. Raises StartupError with the file that is wrong.

    The files are looked at for every handshake: new ones are used from then on.
    """
    from tritonpy import TlsFiles

    files = TlsFiles(options, "frontends.http.tls", log)
    first = _configured(files.context(), options)
    current = first

    def choose(connection: Any, _name: str | None, _context: ssl.SSLContext) -> None:
        nonlocal current
        renewed = files.renewed()
        if renewed is not None:
            current = _configured(renewed, options)
        if current is not first:
            connection.context = current

    first.sni_callback = choose  # called for clients that name no host too
    return first


def _configured(context: ssl.SSLContext, options: HttpTlsOptions) -> ssl.SSLContext:
    context.minimum_version = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}[
        options.minimum_version
    ]
    context.set_alpn_protocols(["http/1.1"])
    return context
