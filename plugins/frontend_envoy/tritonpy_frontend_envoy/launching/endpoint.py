"""What Envoy is to listen on: an address, and which protocols are spoken there."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import Any

from tritonpy import Launch, StartupError, TlsOptions, unix_path
from tritonpy_frontend_http.options import HttpOptions


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An address with its options; one of `http` and `grpc` may be None. `path` is that of a Unix domain socket, "" for TCP."""

    host: str
    port: int
    http: HttpOptions | None
    grpc: Any  # GrpcOptions | None

    @property
    def name(self) -> str:
        """What the listener is called, and the application behind it."""
        if self.http is None:
            return "grpc"
        return "http" if self.grpc is None else "both"

    @property
    def path(self) -> str:
        """The path of the Unix domain socket, "" for TCP."""
        return unix_path(self.host)

    @property
    def options(self) -> Any:
        """The options that both protocols have: those of HTTP where it is spoken."""
        return self.grpc if self.http is None else self.http

    @property
    def tls(self) -> TlsOptions:
        """What encrypts it."""
        tls: TlsOptions = self.options.tls
        return tls

    @property
    def owner(self) -> str:
        """The key of server.yaml under which its options are."""
        return f"frontends.{'grpc' if self.http is None else 'http'}"


def endpoints_of(launch: Launch) -> list[Endpoint]:
    """Return the endpoints of the frontends that are on.

    Raises StartupError where two protocols that share a port want different things of it, and for a host that nobody knows.
    """
    http, grpc = launch.frontends.get("http"), launch.frontends.get("grpc")
    alone = [
        Endpoint(
            _numeric(options.host or launch.host),
            options.port,
            http if options is http else None,
            grpc if options is grpc else None,
        )
        for options in (http, grpc)
        if options is not None
    ]
    if len(alone) < 2 or not _same_place(*alone):
        return alone
    _check_alike(http, grpc)
    return [Endpoint(alone[0].host, alone[0].port, http, grpc)]


def _numeric(host: str) -> str:
    """Return what Envoy takes: the IP address of a host, and the path of a socket as it is. Raises StartupError for names that nobody knows."""
    if unix_path(host):
        return host
    try:
        return str(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][4][0])
    except OSError as error:
        raise StartupError(f"cannot listen on {host}: {error.strerror}") from error


def _same_place(one: Endpoint, other: Endpoint) -> bool:
    if one.path or other.path:
        return one.path == other.path
    return one.host == other.host and one.port == other.port != 0


def _check_alike(http: Any, grpc: Any) -> None:
    for name in ("reuse_port", "socket_mode"):
        if getattr(http, name) != getattr(grpc, name):
            raise StartupError(
                f"HTTP and gRPC share a port: frontends.http.{name} and frontends.grpc.{name} must be the same"
            )
    for name in TlsOptions.__struct_fields__:
        if getattr(http.tls, name) != getattr(grpc.tls, name):
            raise StartupError(
                f"HTTP and gRPC share a port: frontends.http.tls.{name} and frontends.grpc.tls.{name} must be the same"
            )
