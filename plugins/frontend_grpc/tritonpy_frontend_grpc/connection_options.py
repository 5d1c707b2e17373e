"""Options of connections: keepalive, age, number and timeouts."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from tritonpy_frontend_grpc.call_options import GrpcCallOptions

_INT32_MAX = 2**31 - 1
Milliseconds = Annotated[int, Meta(le=_INT32_MAX)]
Count = Annotated[int, Meta(ge=0, le=_INT32_MAX)]


class ConnectionOptions(GrpcCallOptions, frozen=True):
    """The keys of `frontends: grpc:` for connections. A default of 0 means unlimited."""

    keepalive_time_ms: Annotated[
        Milliseconds, Meta(ge=1, description="time without data before the server pings the client")
    ] = 7_200_000
    keepalive_timeout_ms: Annotated[Milliseconds, Meta(ge=0, description="time for a client to acknowledge a ping")] = (
        20_000
    )
    keepalive_permit_without_calls: Annotated[bool, Meta(description="ping clients without open calls")] = False
    http2_max_pings_without_data: Annotated[
        Count, Meta(description="consecutive pings without data, 0 for any number")
    ] = 2
    http2_min_recv_ping_interval_without_data_ms: Annotated[
        Milliseconds, Meta(ge=0, description="shortest interval between pings of a client; faster pings are strikes")
    ] = 300_000
    http2_max_ping_strikes: Annotated[Count, Meta(description="strikes that close a connection, 0 for any number")] = 2
    max_connection_age_ms: Annotated[Milliseconds, Meta(ge=0, description="age at which a connection is closed")] = 0
    max_connection_age_grace_ms: Annotated[
        Milliseconds, Meta(ge=0, description="time for open calls after that age")
    ] = 0
    max_connection_idle_ms: Annotated[
        Milliseconds, Meta(ge=0, description="time without a call after which a connection is closed")
    ] = 0
    max_connections: Annotated[
        Count, Meta(description="number of connections; further ones are closed immediately")
    ] = 0
    handshake_timeout_ms: Annotated[
        Milliseconds, Meta(ge=1, description="time for the TLS and HTTP/2 handshakes of a new connection")
    ] = 60_000


_ARGUMENTS = {
    "keepalive_time_ms": "grpc.keepalive_time_ms",
    "keepalive_timeout_ms": "grpc.keepalive_timeout_ms",
    "keepalive_permit_without_calls": "grpc.keepalive_permit_without_calls",
    "http2_max_pings_without_data": "grpc.http2.max_pings_without_data",
    "http2_min_recv_ping_interval_without_data_ms": "grpc.http2.min_ping_interval_without_data_ms",
    "http2_max_ping_strikes": "grpc.http2.max_ping_strikes",
    "handshake_timeout_ms": "grpc.server_handshake_timeout_ms",
}
_OPTIONAL_ARGUMENTS = {
    "max_connection_age_ms": "grpc.max_connection_age_ms",
    "max_connection_age_grace_ms": "grpc.max_connection_age_grace_ms",
    "max_connection_idle_ms": "grpc.max_connection_idle_ms",
    "max_connections": "grpc.max_allowed_incoming_connections",
}


# By default, grpc rejects calls at random with CANCELLED when 1,000 calls, or one for 30 s, wait for
# the event loop.
_UNLIMITED_QUEUE = [
    ("grpc.server.max_pending_requests", _INT32_MAX),
    ("grpc.server.max_pending_requests_hard_limit", _INT32_MAX),
    ("grpc.server_max_unrequested_time_in_server", _INT32_MAX // 1000),  # s; more would overflow grpc's milliseconds
]


def connection_arguments(options: ConnectionOptions) -> list[tuple[str, Any]]:
    """Return the options as channel arguments of a grpc server."""
    optional = {name: argument for name, argument in _OPTIONAL_ARGUMENTS.items() if getattr(options, name)}
    given = [(argument, int(getattr(options, name))) for name, argument in (_ARGUMENTS | optional).items()]
    newer = "grpc.http2.ping_timeout_ms", options.keepalive_timeout_ms  # the argument of newer grpc versions
    return [*given, *_UNLIMITED_QUEUE, newer]
