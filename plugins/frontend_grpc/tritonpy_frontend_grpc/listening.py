"""Where the server listens: a TCP port or a Unix domain socket, encrypted or not."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import grpc

from tritonpy import StartupError
from tritonpy_frontend_grpc.addresses import name_of, taken

if TYPE_CHECKING:
    from tritonpy import UnixSocket

LISTENERS = 8
"""How many servers share a port. With 32 calls in flight from eight connections executions grow from one request to three; 16 do not add to it."""


def listen_on_port(
    server: grpc.aio.Server, host: str, port: int, credentials: grpc.ServerCredentials | None, *, reuse: bool
) -> str:
    """Return `host:port` as clients reach it; port 0 takes a free one. Raises StartupError."""
    name = name_of(host)
    try:
        _try_out(host, port, reuse=reuse)
        return f"{name}:{_add(server, f'{name}:{port}', credentials)}"
    except (OSError, RuntimeError) as error:
        raise taken(name, port, error) from error


def listen_again(server: grpc.aio.Server, address: str, credentials: grpc.ServerCredentials | None) -> None:
    """Let another server share a port that one has. Raises StartupError."""
    try:
        _add(server, address, credentials)
    except RuntimeError as error:
        name, _, port = address.rpartition(":")
        raise taken(name, int(port), error) from error


def listen_on_socket(server: grpc.aio.Server, file: UnixSocket, credentials: grpc.ServerCredentials | None) -> str:
    """Return the address, `unix:/path`. Raises StartupError."""
    with file.claimed() as path:
        try:
            _add(server, f"unix:{path}", credentials)
        except RuntimeError as error:
            raise StartupError(f"the gRPC frontend cannot listen on unix:{path}: {error}") from error
    return file.address


def _add(server: grpc.aio.Server, address: str, credentials: grpc.ServerCredentials | None) -> int:
    return server.add_insecure_port(address) if credentials is None else server.add_secure_port(address, credentials)


def _try_out(host: str, port: int, *, reuse: bool) -> None:
    """Bind a plain socket first: grpc itself keeps the reason to itself and prints on stderr. Raises OSError."""
    refusal: OSError | None = None
    for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if reuse:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            try:
                probe.bind(address)
            except OSError as error:
                refusal = error
            else:
                return  # grpc too is content with one of a name's addresses
    if refusal is not None:
        raise refusal
