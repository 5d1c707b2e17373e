"""Connections that carry calls of one gRPC method, and what their headers and trailers mean."""

from __future__ import annotations

import asyncio
import ssl
from base64 import b64encode
from urllib.parse import unquote

from tritonpy_bench.load.exchange import Lost
from tritonpy_bench.options import BenchOptions
from tritonpy_bench.wire.address import Address
from tritonpy_bench.wire.http2_connection import Http2Connection, Http2Stream

_STATUS_NAMES = (
    "OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS",
    "UNAUTHENTICATED",
)  # fmt: skip


class GrpcChannel:
    """One connection at a time to a server; `method` is ModelInfer or ModelStreamInfer. Carriers share it."""

    def __init__(self, options: BenchOptions, address: Address, context: ssl.SSLContext | None, method: str) -> None:
        self._address = address
        self._context = context
        self._headers = request_headers(options, address, method)
        self._connection: Http2Connection | None = None
        self._connecting: asyncio.Task[Http2Connection] | None = None

    @property
    def connection(self) -> Http2Connection | None:
        """The connection that new calls may use; None if there is none."""
        connection = self._connection
        return connection if connection is not None and connection.usable else None

    async def connect(self) -> Http2Connection:
        """Return a connection that is ready; callers that come together share one. Raises OSError."""
        if (connection := self.connection) is not None:
            return connection
        if self._connecting is None:
            self._connecting = asyncio.get_running_loop().create_task(self._connect())
        try:
            return await asyncio.shield(self._connecting)
        finally:
            if self._connecting is not None and self._connecting.done():
                self._connecting = None

    def cancel(self, stream: Http2Stream) -> None:
        """Cancel a call that is in flight."""
        if self._connection is not None:
            self._connection.cancel(stream)

    def close(self) -> None:
        """Close the connection; calls in flight are cancelled."""
        if self._connecting is not None:
            self._connecting.cancel()
        if self._connection is not None:
            self._connection.close()

    async def _connect(self) -> Http2Connection:
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

    def _protocol(self) -> Http2Connection:
        return Http2Connection(self._headers)


def request_headers(options: BenchOptions, address: Address, method: str) -> list[tuple[str, str]]:
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
        headers.append((lower, b64encode(value.encode()).decode() if lower.endswith("-bin") else value))
    return headers


def status_error(headers: dict[str, str]) -> str | None:
    """Return the error that a response's headers or trailers tell, None if they tell of none or of OK."""
    status = headers.get("grpc-status")
    if status is None:
        http = headers.get(":status", "200")
        return None if http == "200" else f"UNKNOWN: HTTP status {http}"
    if status == "0":
        return None
    name = _STATUS_NAMES[int(status)] if status.isdigit() and int(status) < len(_STATUS_NAMES) else f"status {status}"
    text = f"{name}: {unquote(headers.get('grpc-message', '')) or 'no text'}"
    return Lost(text) if name == "UNAVAILABLE" else text


def reset_error(name: str) -> str:
    """Return the error of a call whose stream the server reset with that HTTP/2 error code."""
    if isinstance(name, Lost):
        return Lost(f"UNAVAILABLE: {name}")
    text = f"the server reset the stream with {name}"
    return Lost(f"UNAVAILABLE: {text}") if name == "REFUSED_STREAM" else f"INTERNAL: {text}"
