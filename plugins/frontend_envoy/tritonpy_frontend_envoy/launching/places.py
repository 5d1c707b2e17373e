"""Addresses, tried out before Envoy is started: what it says of one that it cannot have is no text for an operator."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from dataclasses import replace

from tritonpy import StartupError, UnixSocket
from tritonpy_frontend_envoy.launching.endpoint import Endpoint

_PROTOCOLS = {"http": "HTTP", "grpc": "gRPC", "both": "HTTP and gRPC"}


@contextlib.contextmanager
def claim(endpoint: Endpoint) -> Iterator[None]:
    """Make sure that Envoy can listen on an address; clean up after it at the end. Raises StartupError."""
    if not endpoint.path:
        _try_out(endpoint)
        yield
        return
    file = UnixSocket(endpoint.path, int(endpoint.options.socket_mode, 8))
    with file.claimed() as path, socket.socket(socket.AF_UNIX) as place:
        place.bind(path)  # Envoy puts its own in this one's place
    try:
        yield
    finally:
        _remove(file)


def numbered(endpoint: Endpoint) -> Endpoint:
    """Return an endpoint with a number for its port: HTTP/3 is spoken on the UDP port of the same one, which Envoy would choose by itself."""
    if endpoint.path or endpoint.port or not endpoint.tls.on:
        return endpoint
    family = socket.AF_INET6 if ":" in endpoint.host else socket.AF_INET
    with (
        contextlib.suppress(OSError),
        socket.socket(family) as stream,
        socket.socket(family, socket.SOCK_DGRAM) as datagrams,
    ):
        stream.bind((endpoint.host, 0))
        datagrams.bind((endpoint.host, stream.getsockname()[1]))
        return replace(endpoint, port=stream.getsockname()[1])
    return endpoint  # whatever is wrong is told when the address is tried out


def _try_out(endpoint: Endpoint) -> None:
    host, port, protocol = endpoint.host, endpoint.port, _PROTOCOLS[endpoint.name]
    shown = f"[{host}]" if ":" in host else host
    try:
        family, kind, number, _, where = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, number) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if endpoint.options.reuse_port:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            probe.bind(where)
            probe.listen(1)
    except OSError as error:
        raise StartupError(
            f"cannot listen for {protocol} on {shown}:{port}: {error.strerror}; choose another port or stop what uses it"
        ) from error


def _remove(file: UnixSocket) -> None:
    """Remove the socket that Envoy left, unless somebody listens on it by now: then it is that one's."""
    with contextlib.suppress(StartupError), file.claimed() as path, socket.socket(socket.AF_UNIX) as place:
        place.bind(path)
    file.remove()
