"""Server addresses."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import urlsplit

from tritonpy_load_generator.options import BadUsage, LoadOptions


class Address(NamedTuple):
    """Host and port or a Unix domain socket, the use of TLS, and the prefix of all HTTP paths."""

    host: str
    port: int
    tls: bool = False
    prefix: str = ""
    unix_path: str = ""

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def http_address(options: LoadOptions) -> Address:
    """Parse `host`, `host:port`, or an http or https URL. Raises BadUsage."""
    text = options.url or "localhost:8000"
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        port = parts.port
    except ValueError as error:
        raise BadUsage(f"-u {text}: {error}") from error
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise BadUsage(f"-u {text} is not an HTTP address: expected HOST:PORT")
    tls = parts.scheme == "https"
    standard = 443 if tls else 80 if "://" in text else 8000
    return Address(parts.hostname, port or standard, tls, parts.path.rstrip("/"))


def grpc_address(options: LoadOptions) -> Address:
    """Parse `host`, `host:port`, `unix:PATH`, or an http, https, grpc or grpcs URL.

    Raises BadUsage.
    """
    text = options.url or "localhost:8001"
    if text.startswith("unix:"):
        path = text.removeprefix("unix:")
        return Address(
            "localhost", 0, options.ssl_grpc_use_ssl, unix_path=path.removeprefix("//") or path
        )
    try:
        parts = urlsplit(text if "://" in text else f"grpc://{text}")
        port = parts.port
    except ValueError as error:
        raise BadUsage(f"-u {text}: {error}") from error
    if parts.scheme not in {"http", "https", "grpc", "grpcs"} or not parts.hostname:
        raise BadUsage(f"-u {text} is not a gRPC address: expected HOST:PORT")
    return Address(
        parts.hostname, port or 8001, options.ssl_grpc_use_ssl or parts.scheme in {"https", "grpcs"}
    )
