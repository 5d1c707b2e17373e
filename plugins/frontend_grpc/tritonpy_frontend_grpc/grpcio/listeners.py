"""Listening addresses of grpc.aio servers: TCP ports and Unix domain sockets."""

from __future__ import annotations

import logging
import socket
import threading
from typing import TYPE_CHECKING, Any

import grpc

from tritonpy import StartupError
from tritonpy.frontend import TlsFiles, TlsOptions
from tritonpy_frontend_grpc.addresses import format_host, listen_error

if TYPE_CHECKING:
    from tritonpy.frontend import UnixSocket


LISTENERS = 8
"""Number of servers that share a port.

With 32 calls in flight on eight connections, batches grow from one request to three; 16 servers do
not improve that.
"""


def listen_on_port(
    server: grpc.aio.Server,
    host: str,
    port: int,
    credentials: grpc.ServerCredentials | None,
    *,
    reuse: bool,
) -> str:
    """Listen on a port, 0 for a free one, and return `host:port`. Raises StartupError."""
    name = format_host(host)
    try:
        _check_bindable(host, port, reuse=reuse)
        return f"{name}:{_add(server, f'{name}:{port}', credentials)}"
    except (OSError, RuntimeError) as error:
        raise listen_error(name, port, error) from error


def listen_again(
    server: grpc.aio.Server, address: str, credentials: grpc.ServerCredentials | None
) -> None:
    """Let another server share the port at `address`. Raises StartupError."""
    try:
        _add(server, address, credentials)
    except RuntimeError as error:
        name, _, port = address.rpartition(":")
        raise listen_error(name, int(port), error) from error


def listen_on_socket(
    server: grpc.aio.Server, file: UnixSocket, credentials: grpc.ServerCredentials | None
) -> str:
    """Listen on a Unix domain socket and return its address, `unix:/path`. Raises StartupError."""
    with file.claimed() as path:
        try:
            _add(server, f"unix:{path}", credentials)
        except RuntimeError as error:
            raise StartupError(
                f"the gRPC frontend cannot listen on unix:{path}: {error}"
            ) from error
    return file.address


def _add(server: grpc.aio.Server, address: str, credentials: grpc.ServerCredentials | None) -> int:
    return (
        server.add_insecure_port(address)
        if credentials is None
        else server.add_secure_port(address, credentials)
    )


def _check_bindable(host: str, port: int, *, reuse: bool) -> None:
    """Bind a plain socket first, to get the reason of a failure, which grpc only prints.

    Raises OSError.
    """
    refusal: OSError | None = None
    for family, kind, protocol, _, address in socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM
    ):
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if reuse:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            try:
                probe.bind(address)
            except OSError as error:
                refusal = error
            else:
                return  # like grpc, accept one of the addresses of a name
    if refusal is not None:
        raise refusal


class TlsCredentials:
    """Credentials for any number of servers.

    The files are checked at every handshake, so all servers use renewed files immediately.
    """

    def __init__(self, options: TlsOptions, log: logging.Logger) -> None:
        """Raise StartupError that names an invalid file."""
        self._mutual = options.mutual
        self._lock = threading.Lock()
        self._changes = 0
        self._files: TlsFiles | None = None
        if options.on:
            self._files = TlsFiles(options, "frontends.grpc.tls", log)
            self._files.context()  # validates the files: unlike grpc, OpenSSL reports the cause
            self._latest = _configuration(self._files)

    def make(self) -> grpc.ServerCredentials | None:
        """Return the credentials of one server, None without TLS."""
        if self._files is None:
            return None
        given, files = self._changes, self._files

        def renewed() -> Any:  # None keeps the current configuration; the library's types omit that
            nonlocal given
            with self._lock:  # each server calls this in a separate thread
                if files.renewed() is not None:
                    self._changes += 1
                    self._latest = _configuration(files)
                if given == self._changes:
                    return None
                given = self._changes
                return self._latest

        return grpc.dynamic_ssl_server_credentials(self._latest, renewed, self._mutual)


def _configuration(files: TlsFiles) -> grpc.ServerCertificateConfiguration:
    certificate, key, roots = files.contents()
    return grpc.ssl_server_certificate_configuration([(key, certificate)], roots)
