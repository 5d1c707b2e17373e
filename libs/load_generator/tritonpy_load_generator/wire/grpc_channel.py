"""Connections for calls of one gRPC method, with their request headers and response status."""

from __future__ import annotations

import asyncio
import ssl
from base64 import b64encode
from urllib.parse import unquote

from tritonpy_load_generator.loops.exchange import LostConnection
from tritonpy_load_generator.options import LoadOptions
from tritonpy_load_generator.wire.address import Address
from tritonpy_load_generator.wire.http2_connection import ClientConnection, ClientStream

_STATUS_NAMES = (
    "OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND",
    "ALREADY_EXISTS", "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED",
    "INTERNAL", "UNAVAILABLE", "DATA_LOSS",
    "UNAUTHENTICATED",
)  # fmt: skip


class GrpcChannel:
    """One shared connection to a server; `method` is ModelInfer or ModelStreamInfer."""

    def __init__(
        self, options: LoadOptions, address: Address, context: ssl.SSLContext | None, method: str
    ) -> None:
        self._address = address
        self._context = context
        self._headers = request_headers(options, address, method)
        self._connection: ClientConnection | None = None
        self._connecting: asyncio.Task[ClientConnection] | None = None

    @property
    def connection(self) -> ClientConnection | None:
        """The connection for new calls, or None."""
        connection = self._connection
        return connection if connection is not None and connection.usable else None

    async def connect(self) -> ClientConnection:
        """Return a ready connection; concurrent callers share one. Raises OSError."""
        if (connection := self.connection) is not None:
            return connection
        if self._connecting is None:
            self._connecting = asyncio.get_running_loop().create_task(self._connect())
        try:
            return await asyncio.shield(self._connecting)
        finally:
            if self._connecting is not None and self._connecting.done():
                self._connecting = None

    def cancel(self, stream: ClientStream) -> None:
        """Cancel a call in flight."""
        if self._connection is not None:
            self._connection.cancel(stream)

    def close(self) -> None:
        """Close the connection and cancel the calls in flight."""
        if self._connecting is not None:
            self._connecting.cancel()
        if self._connection is not None:
            self._connection.close()

    async def _connect(self) -> ClientConnection:
        loop, address = asyncio.get_running_loop(), self._address
        name = address.host if self._context else None
        if address.unix_path:
            _, connection = await loop.create_unix_connection(self._protocol, address.unix_path)
        else:
            _, connection = await loop.create_connection(
                self._protocol, address.host, address.port, ssl=self._context, server_hostname=name
            )
        self._connection = connection
        await connection.ready
        return connection

    def _protocol(self) -> ClientConnection:
        return ClientConnection(self._headers)


def request_headers(options: LoadOptions, address: Address, method: str) -> list[tuple[str, str]]:
    """Return the headers of every call (gRPC over HTTP/2, "Requests")."""
    compression = options.grpc_compression_algorithm
    headers = [
        (":method", "POST"),
        (":scheme", "https" if address.tls else "http"),
        (":path", f"/inference.GRPCInferenceService/{method}"),
        (":authority", str(address)),
        ("te", "trailers"),
        ("content-type", "application/grpc"),
        ("user-agent", "tritonpy-bench"),
        ("grpc-accept-encoding", "identity, deflate, gzip"),
    ]
    if compression != "none":
        headers.append(("grpc-encoding", compression))
    for name, value in options.headers:
        lower = name.lower()
        headers.append(
            (lower, b64encode(value.encode()).decode() if lower.endswith("-bin") else value)
        )
    return headers


def status_error(headers: dict[str, str]) -> str | None:
    """Return the error in a response's headers or trailers; None for OK or without a status."""
    status = headers.get("grpc-status")
    if status is None:
        http = headers.get(":status", "200")
        return None if http == "200" else f"UNKNOWN: HTTP status {http}"
    if status == "0":
        return None
    name = (
        _STATUS_NAMES[int(status)]
        if status.isdigit() and int(status) < len(_STATUS_NAMES)
        else f"status {status}"
    )
    text = f"{name}: {unquote(headers.get('grpc-message', '')) or 'no text'}"
    return LostConnection(text) if name == "UNAVAILABLE" else text


def reset_error(name: str) -> str:
    """Return the error of a call whose stream was reset with the HTTP/2 error code `name`."""
    if isinstance(name, LostConnection):
        return LostConnection(f"UNAVAILABLE: {name}")
    text = f"the server reset the stream with {name}"
    return (
        LostConnection(f"UNAVAILABLE: {text}") if name == "REFUSED_STREAM" else f"INTERNAL: {text}"
    )
