"""The flags of HTTP and gRPC: Triton's, and for HTTP those of encryption that Triton has for gRPC alone."""

from __future__ import annotations

from tritonpy.cli.flag import Flag, Parse, Status, boolean, choice, integer, plain, positive, within
from tritonpy.cli.restriction_flag import restriction

_LOOP = "one event loop serves every connection"


def _none(name: str, group: str, parse: Parse, text: str, note: str) -> Flag:
    return Flag(name, group, parse, text, Status.NO_EFFECT, note=note)


def _tls(protocol: str, shown: str, group: str) -> tuple[Flag, ...]:
    """Return the flags of both protocols that name the files and ask clients for theirs."""
    path = f"frontends.{protocol}.tls"
    mutual = f"Encrypt {shown} and ask clients for a certificate."
    chain, vouching = "Certificate file, with its chain.", "File of the certificates that vouch for clients."
    return (
        Flag(f"{protocol}-use-ssl-mutual", group, boolean, mutual, path=f"{path}.mutual"),
        Flag(f"{protocol}-server-cert", group, plain, chain, path=f"{path}.certificate_file"),
        Flag(f"{protocol}-server-key", group, plain, "Key file of the certificate.", path=f"{path}.key_file"),
        Flag(f"{protocol}-root-cert", group, plain, vouching, path=f"{path}.client_ca_file"),
    )


_G = "HTTP"
HTTP = (
    Flag("allow-http", _G, boolean, "Serve HTTP.", path="frontends.http"),
    Flag("http-address", _G, plain, "Address to bind to, or unix:/path.", path="frontends.http.host"),
    Flag("http-port", _G, integer, "Port, 8000 if not given.", path="frontends.http.port"),
    Flag("reuse-http-port", _G, boolean, "Share the port with other servers.", path="frontends.http.reuse_port"),
    Flag(
        "http-header-forward-pattern",
        _G,
        plain,
        "Regular expression for the names of headers that become request parameters.",
        path="frontends.http.header_forward_pattern",
    ),
    _none("http-thread-count", _G, integer, "Threads for HTTP.", _LOOP),
    Flag(
        "http-use-ssl",
        _G,
        boolean,
        "Encrypt HTTP; tritonpy's own, like the flags of gRPC.",
        path="frontends.http.tls.enabled",
    ),
    *_tls("http", "HTTP", _G),
    Flag(
        "http-max-input-size",
        _G,
        positive("http-max-input-size"),
        "Largest JSON, JSON tensor, raw binary body and decompressed body in bytes.",
        path="frontends.http.max_input_size",
    ),
    Flag(
        "http-generate-unknown-parameters",
        _G,
        choice("http-generate-unknown-parameters", "refuse", "forward"),
        "What generate does with a parameter that the model does not read: refuse it, or forward it as Triton does.",
        path="frontends.http.generate_unknown_parameters",
    ),
    Flag(
        "http-restricted-api",
        _G,
        restriction("http-restricted-api", "api"),
        "APIs that need a header with a secret value; once per header.",
        path="frontends.http.restricted_apis",
        repeated=True,
        metavar="APIS:HEADER=VALUE",
    ),
)

_G = "GRPC"
GRPC = (
    Flag("allow-grpc", _G, boolean, "Serve gRPC.", path="frontends.grpc"),
    Flag("grpc-address", _G, plain, "Address to bind to, or unix:/path.", path="frontends.grpc.host"),
    Flag("grpc-port", _G, integer, "Port, 8001 if not given.", path="frontends.grpc.port"),
    Flag("reuse-grpc-port", _G, boolean, "Share the port with other servers.", path="frontends.grpc.reuse_port"),
    Flag(
        "grpc-header-forward-pattern",
        _G,
        plain,
        "Regular expression for the names of headers that become request parameters.",
        path="frontends.grpc.header_forward_pattern",
    ),
    _none(
        "grpc-infer-thread-count", _G, within("grpc_infer_thread_count", 2, 128), "Threads for gRPC inference.", _LOOP
    ),
    _none(
        "grpc-infer-allocation-pool-size",
        _G,
        integer,
        "Request objects kept for reuse.",
        "Python's allocator does this",
    ),
    Flag(
        "grpc-max-response-pool-size",
        _G,
        positive("grpc-max-response-pool-size"),
        "Answers of one stream that may wait for a slow client.",
        path="frontends.grpc.max_response_pool_size",
    ),
    Flag("grpc-use-ssl", _G, boolean, "Encrypt gRPC.", path="frontends.grpc.tls.enabled"),
    *_tls("grpc", "gRPC", _G),
    Flag(
        "grpc-infer-response-compression-level",
        _G,
        choice("grpc_infer_response_compression_level", "none", "low", "medium", "high"),
        "Compression of answers, where the client takes it.",
        path="frontends.grpc.infer_response_compression_level",
    ),
    Flag(
        "grpc-keepalive-time",
        _G,
        integer,
        "Milliseconds without a sign of life until a client is pinged.",
        path="frontends.grpc.keepalive_time_ms",
    ),
    Flag(
        "grpc-keepalive-timeout",
        _G,
        integer,
        "Milliseconds that a client has to answer.",
        path="frontends.grpc.keepalive_timeout_ms",
    ),
    Flag(
        "grpc-keepalive-permit-without-calls",
        _G,
        boolean,
        "Ping clients that have no call open.",
        path="frontends.grpc.keepalive_permit_without_calls",
    ),
    Flag(
        "grpc-http2-max-pings-without-data",
        _G,
        integer,
        "Pings in a row while no data is sent, 0 for any.",
        path="frontends.grpc.http2_max_pings_without_data",
    ),
    Flag(
        "grpc-http2-min-recv-ping-interval-without-data",
        _G,
        integer,
        "Milliseconds expected between the pings of a client without calls.",
        path="frontends.grpc.http2_min_recv_ping_interval_without_data_ms",
    ),
    Flag(
        "grpc-http2-max-ping-strikes",
        _G,
        integer,
        "Bad pings that end a connection, 0 for any.",
        path="frontends.grpc.http2_max_ping_strikes",
    ),
    Flag(
        "grpc-max-connection-age",
        _G,
        integer,
        "Milliseconds a connection may live.",
        path="frontends.grpc.max_connection_age_ms",
    ),
    Flag(
        "grpc-max-connection-age-grace",
        _G,
        integer,
        "Milliseconds for its last calls.",
        path="frontends.grpc.max_connection_age_grace_ms",
    ),
    Flag(
        "grpc-restricted-protocol",
        _G,
        restriction("grpc-restricted-protocol", "protocol"),
        "Protocols that need the header triton-grpc-protocol-HEADER with a secret value; once per header.",
        path="frontends.grpc.restricted_apis",
        repeated=True,
        metavar="PROTOCOLS:HEADER=VALUE",
    ),
)
