"""The options of the balancer."""

from __future__ import annotations

from typing import Literal

import msgspec

Policy = Literal["least-request", "round-robin", "load"]


class InvalidBackend(Exception):
    """A text that names no server."""


class ServerAddress(msgspec.Struct, frozen=True, order=True):
    """A server: the port `http` for HTTP, and `grpc` for gRPC, which may be the same."""

    host: str
    http: int
    grpc: int

    @property
    def name(self) -> str:
        """The server in messages."""
        ports = f"{self.http}" if self.http == self.grpc else f"{self.http}:{self.grpc}"
        return f"{self.host}:{ports}"


class BalanceOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Which servers, where to listen, and how to choose; times are in seconds, sizes in bytes.

    `backends` are texts `HOST:PORT` or `HOST:HTTP_PORT:GRPC_PORT`; one of `backends`, `file` (a
    path) and `dns` (the same text, whose host has one address per server) is given.
    """

    backends: tuple[str, ...] = ()
    file: str = ""
    dns: str = ""
    host: str = "127.0.0.1"
    port: int = 8080
    metrics_port: int = 0
    policy: Policy = "least-request"
    certificate: str = ""
    key: str = ""
    client_ca: str = ""
    http3: bool = True
    server_tls: bool = False
    server_ca: str = ""
    server_name: str = ""
    access_log: str = ""
    retries: int = 3
    retry_buffer: int = 16 << 20
    slow_start_s: float = 10.0
    health_interval_s: float = 0.5
    poll_s: float = 1.0
    drain_s: float = 30.0
    grpc_model_routes: bool = True
    management: bool = False
    folder: str = ""


def parse_backend(text: str) -> ServerAddress:
    """Return the server that `HOST:PORT` or `HOST:HTTP_PORT:GRPC_PORT` names.

    Raises InvalidBackend for any other text.
    """
    plain = text.strip()
    if plain.startswith("["):
        host, _, ports = plain[1:].partition("]:")
    else:
        host, _, ports = plain.partition(":")
    numbers = ports.split(":")
    if not host or len(numbers) > 2 or not all(_is_port(each) for each in numbers):
        raise InvalidBackend(f"'{text}': expected HOST:PORT or HOST:HTTP_PORT:GRPC_PORT")
    return ServerAddress(host, int(numbers[0]), int(numbers[-1]))


def _is_port(text: str) -> bool:
    return text.isdigit() and 0 < int(text) < 1 << 16
