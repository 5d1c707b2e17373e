"""All options of gRPC frontends, independent of the transport."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from tritonpy.frontend import TlsOptions
from tritonpy_frontend_grpc.call_options import GrpcCallOptions

INT32_MAX = 2**31 - 1
Milliseconds = Annotated[int, Meta(le=INT32_MAX)]
Count = Annotated[int, Meta(ge=0, le=INT32_MAX)]


class ConnectionOptions(GrpcCallOptions, frozen=True):
    """The keys of `frontends: grpc:` for connections. A default of 0 means unlimited."""

    keepalive_time_ms: Annotated[
        Milliseconds, Meta(ge=1, description="time without data before the server pings the client")
    ] = 7_200_000
    keepalive_timeout_ms: Annotated[
        Milliseconds, Meta(ge=0, description="time for a client to acknowledge a ping")
    ] = 20_000
    keepalive_permit_without_calls: Annotated[
        bool, Meta(description="ping clients without open calls")
    ] = False
    http2_max_pings_without_data: Annotated[
        Count, Meta(description="consecutive pings without data, 0 for any number")
    ] = 2
    http2_min_recv_ping_interval_without_data_ms: Annotated[
        Milliseconds,
        Meta(
            ge=0,
            description="shortest interval between pings of a client; faster pings are strikes",
        ),
    ] = 300_000
    http2_max_ping_strikes: Annotated[
        Count, Meta(description="strikes that close a connection, 0 for any number")
    ] = 2
    max_connection_age_ms: Annotated[
        Milliseconds, Meta(ge=0, description="age at which a connection is closed")
    ] = 0
    max_connection_age_grace_ms: Annotated[
        Milliseconds, Meta(ge=0, description="time for open calls after that age")
    ] = 0
    max_connection_idle_ms: Annotated[
        Milliseconds,
        Meta(ge=0, description="time without a call after which a connection is closed"),
    ] = 0
    max_connections: Annotated[
        Count, Meta(description="number of connections; further ones are closed immediately")
    ] = 0
    handshake_timeout_ms: Annotated[
        Milliseconds,
        Meta(ge=1, description="time for the TLS and HTTP/2 handshakes of a new connection"),
    ] = 60_000


class GrpcOptions(ConnectionOptions, frozen=True):
    """The keys of `frontends: grpc:`."""

    port: Annotated[
        int, Meta(ge=0, le=65535, description="port of the gRPC endpoint; 0 picks a free one")
    ] = 8001
    host: Annotated[
        str | None, Meta(description="address to listen on instead of the server's, or unix:/path")
    ] = None
    reuse_port: Annotated[
        bool, Meta(description="share the port with other servers on this machine")
    ] = False
    socket_mode: Annotated[
        str, Meta(pattern="^0?[0-7]{3}$", description="file mode of unix:/path, as for chmod")
    ] = "0660"
    tls: Annotated[TlsOptions, Meta(description="certificate and key that encrypt the port")] = (
        TlsOptions()
    )
