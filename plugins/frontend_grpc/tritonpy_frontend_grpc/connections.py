"""What is asked of connections: keepalive, age, how many, and for how long one may keep the server waiting."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from tritonpy_frontend_grpc.call_options import CallOptions

_INT32_MAX = 2**31 - 1
Milliseconds = Annotated[int, Meta(le=_INT32_MAX)]
Count = Annotated[int, Meta(ge=0, le=_INT32_MAX)]


class ConnectionOptions(CallOptions, frozen=True):
    """Beside those of calls, the keys of `frontends: grpc:` that concern connections; what is 0 by default is unlimited."""

    keepalive_time_ms: Annotated[
        Milliseconds, Meta(ge=1, description="time without a sign of life until the client is pinged")
    ] = 7_200_000
    keepalive_timeout_ms: Annotated[Milliseconds, Meta(ge=0, description="time that a client has to answer a ping")] = (
        20_000
    )
    keepalive_permit_without_calls: Annotated[bool, Meta(description="ping clients that have no call open")] = False
    http2_max_pings_without_data: Annotated[Count, Meta(description="pings in a row without data, 0 for any")] = 2
    http2_min_recv_ping_interval_without_data_ms: Annotated[
        Milliseconds, Meta(ge=0, description="a client without calls that pings more often collects strikes")
    ] = 300_000
    http2_max_ping_strikes: Annotated[Count, Meta(description="strikes that end a connection, 0 for any")] = 2
    max_connection_age_ms: Annotated[Milliseconds, Meta(ge=0, description="age at which a connection ends")] = 0
    max_connection_age_grace_ms: Annotated[Milliseconds, Meta(ge=0, description="time for its last calls")] = 0
    max_connection_idle_ms: Annotated[
        Milliseconds, Meta(ge=0, description="time without a call that ends a connection")
    ] = 0
    max_connections: Annotated[Count, Meta(description="connections at a time; one more is closed at once")] = 0
    handshake_timeout_ms: Annotated[
        Milliseconds, Meta(ge=1, description="time that TLS and HTTP/2 have to begin on a new connection")
    ] = 60_000


_ALWAYS = {
    "keepalive_time_ms": "grpc.keepalive_time_ms",
    "keepalive_timeout_ms": "grpc.keepalive_timeout_ms",
    "keepalive_permit_without_calls": "grpc.keepalive_permit_without_calls",
    "http2_max_pings_without_data": "grpc.http2.max_pings_without_data",
    "http2_min_recv_ping_interval_without_data_ms": "grpc.http2.min_ping_interval_without_data_ms",
    "http2_max_ping_strikes": "grpc.http2.max_ping_strikes",
    "handshake_timeout_ms": "grpc.server_handshake_timeout_ms",
}
_WHERE_ASKED = {
    "max_connection_age_ms": "grpc.max_connection_age_ms",
    "max_connection_age_grace_ms": "grpc.max_connection_age_grace_ms",
    "max_connection_idle_ms": "grpc.max_connection_idle_ms",
    "max_connections": "grpc.max_allowed_incoming_connections",
}


# By default grpc turns calls away at random, as CANCELLED, once 1,000 wait for the event loop, or one does for 30 s.
_PATIENCE = [
    ("grpc.server.max_pending_requests", _INT32_MAX),
    ("grpc.server.max_pending_requests_hard_limit", _INT32_MAX),
    ("grpc.server_max_unrequested_time_in_server", _INT32_MAX // 1000),  # s; beyond it grpc's milliseconds run over
]


def connection_arguments(options: ConnectionOptions) -> list[tuple[str, Any]]:
    """Return the options as arguments of a grpc server."""
    asked = {name: argument for name, argument in _WHERE_ASKED.items() if getattr(options, name)}
    given = [(argument, int(getattr(options, name))) for name, argument in (_ALWAYS | asked).items()]
    newer = "grpc.http2.ping_timeout_ms", options.keepalive_timeout_ms  # the one that newer cores look at
    return [*given, *_PATIENCE, newer]
