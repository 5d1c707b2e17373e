"""The flags of HTTP, gRPC and the OpenAI API.

HTTP and the OpenAI API have the TLS flags that Triton has only for gRPC.
"""

from __future__ import annotations

from typing import Any

from tritonpy.auth import ApiCategory
from tritonpy_serve.flag import (
    Flag,
    Parse,
    Status,
    boolean,
    choice,
    integer,
    plain,
    positive,
    within,
)

LOOP = "one event loop serves every connection"


_CATEGORIES = {category.value for category in ApiCategory}


def restriction(flag: str, what: str) -> Parse:
    """Return a parser for an entry of `restricted_apis` in server.yaml.

    `what` is "api" or "protocol".
    """

    def parse(text: str) -> dict[str, Any]:
        names, colon, rest = text.partition(":")
        key, equals, value = rest.partition("=")
        if not (colon and equals and names and key and value):
            raise ValueError(
                f"--{flag} option format is '<config name>:<setting>=<value>'. Got {text}"
            )
        apis = names.split(",")
        for position, name in enumerate(apis):
            if name not in _CATEGORIES:
                raise ValueError(f"unknown restricted {what} '{name}'")
            if name in apis[:position]:
                raise ValueError(
                    f"restricted {what} '{name}' can not be specified in multiple config groups"
                )
        return {"apis": apis, "key": key, "value": value}

    return parse


def _no_effect(name: str, group: str, parse: Parse, text: str, note: str) -> Flag:
    return Flag(name, group, parse, text, Status.NO_EFFECT, note=note)


def _tls(protocol: str, title: str, group: str) -> tuple[Flag, ...]:
    """Return the TLS flags of a protocol."""
    path = f"frontends.{protocol}.tls"
    mutual = f"Encrypt {title} and require client certificates."
    chain, client_ca = (
        "Certificate file, including its chain.",
        "File with the CA certificates of clients.",
    )
    return (
        Flag(f"{protocol}-use-ssl-mutual", group, boolean, mutual, path=f"{path}.mutual"),
        Flag(f"{protocol}-server-cert", group, plain, chain, path=f"{path}.certificate_file"),
        Flag(
            f"{protocol}-server-key",
            group,
            plain,
            "Private key file of the certificate.",
            path=f"{path}.key_file",
        ),
        Flag(f"{protocol}-root-cert", group, plain, client_ca, path=f"{path}.client_ca_file"),
    )


_G = "HTTP"
HTTP = (
    Flag("allow-http", _G, boolean, "Serve HTTP.", path="frontends.http"),
    Flag(
        "http-address",
        _G,
        plain,
        "Address to bind to, or unix:/path for a Unix domain socket.",
        path="frontends.http.host",
    ),
    Flag("http-port", _G, integer, "Port (default 8000).", path="frontends.http.port"),
    Flag(
        "reuse-http-port",
        _G,
        boolean,
        "Share the port with other servers.",
        path="frontends.http.reuse_port",
    ),
    Flag(
        "http-header-forward-pattern",
        _G,
        plain,
        "Regular expression for names of headers that become request parameters.",
        path="frontends.http.header_forward_pattern",
    ),
    _no_effect("http-thread-count", _G, integer, "Number of threads for HTTP.", LOOP),
    Flag(
        "http-use-ssl",
        _G,
        boolean,
        "Encrypt HTTP (a flag of tritonpy, like --grpc-use-ssl).",
        path="frontends.http.tls.enabled",
    ),
    *_tls("http", "HTTP", _G),
    Flag(
        "http-max-input-size",
        _G,
        positive("http-max-input-size"),
        (
            "Maximum size in bytes of a JSON document, JSON tensor, raw binary body and "
            "decompressed body."
        ),
        path="frontends.http.max_input_size",
    ),
    Flag(
        "http-generate-unknown-parameters",
        _G,
        choice("http-generate-unknown-parameters", "refuse", "forward"),
        (
            "Generate requests with parameters that the model does not read: refuse the request, "
            "or forward them as Triton does."
        ),
        path="frontends.http.generate_unknown_parameters",
    ),
    Flag(
        "http-restricted-api",
        _G,
        restriction("http-restricted-api", "api"),
        "APIs that require a header with a secret value. Repeat it per header.",
        path="frontends.http.restricted_apis",
        repeated=True,
        metavar="APIS:HEADER=VALUE",
    ),
)

_G = "GRPC"
GRPC = (
    Flag("allow-grpc", _G, boolean, "Serve gRPC.", path="frontends.grpc"),
    Flag(
        "grpc-address",
        _G,
        plain,
        "Address to bind to, or unix:/path for a Unix domain socket.",
        path="frontends.grpc.host",
    ),
    Flag("grpc-port", _G, integer, "Port (default 8001).", path="frontends.grpc.port"),
    Flag(
        "reuse-grpc-port",
        _G,
        boolean,
        "Share the port with other servers.",
        path="frontends.grpc.reuse_port",
    ),
    Flag(
        "grpc-header-forward-pattern",
        _G,
        plain,
        "Regular expression for names of headers that become request parameters.",
        path="frontends.grpc.header_forward_pattern",
    ),
    _no_effect(
        "grpc-infer-thread-count",
        _G,
        within("grpc_infer_thread_count", 2, 128),
        "Number of threads for gRPC inference.",
        LOOP,
    ),
    _no_effect(
        "grpc-infer-allocation-pool-size",
        _G,
        integer,
        "Number of request objects kept for reuse.",
        "Python's allocator reuses memory",
    ),
    Flag(
        "grpc-max-response-pool-size",
        _G,
        positive("grpc-max-response-pool-size"),
        "Maximum number of responses of one stream that wait for a slow client.",
        path="frontends.grpc.max_response_pool_size",
    ),
    Flag("grpc-use-ssl", _G, boolean, "Encrypt gRPC.", path="frontends.grpc.tls.enabled"),
    *_tls("grpc", "gRPC", _G),
    Flag(
        "grpc-infer-response-compression-level",
        _G,
        choice("grpc_infer_response_compression_level", "none", "low", "medium", "high"),
        "Compression level of responses, if the client accepts it.",
        path="frontends.grpc.infer_response_compression_level",
    ),
    Flag(
        "grpc-keepalive-time",
        _G,
        integer,
        "Milliseconds without activity after which the server pings a client.",
        path="frontends.grpc.keepalive_time_ms",
    ),
    Flag(
        "grpc-keepalive-timeout",
        _G,
        integer,
        "Milliseconds within which a client must acknowledge a ping.",
        path="frontends.grpc.keepalive_timeout_ms",
    ),
    Flag(
        "grpc-keepalive-permit-without-calls",
        _G,
        boolean,
        "Ping clients without open calls, too.",
        path="frontends.grpc.keepalive_permit_without_calls",
    ),
    Flag(
        "grpc-http2-max-pings-without-data",
        _G,
        integer,
        "Maximum number of pings in a row without data, 0 for no limit.",
        path="frontends.grpc.http2_max_pings_without_data",
    ),
    Flag(
        "grpc-http2-min-recv-ping-interval-without-data",
        _G,
        integer,
        "Minimum time in milliseconds between pings of a client without calls.",
        path="frontends.grpc.http2_min_recv_ping_interval_without_data_ms",
    ),
    Flag(
        "grpc-http2-max-ping-strikes",
        _G,
        integer,
        "Number of bad pings that end a connection, 0 for no limit.",
        path="frontends.grpc.http2_max_ping_strikes",
    ),
    Flag(
        "grpc-max-connection-age",
        _G,
        integer,
        "Maximum age of a connection in milliseconds.",
        path="frontends.grpc.max_connection_age_ms",
    ),
    Flag(
        "grpc-max-connection-age-grace",
        _G,
        integer,
        "Milliseconds that calls may take after the maximum age.",
        path="frontends.grpc.max_connection_age_grace_ms",
    ),
    Flag(
        "grpc-restricted-protocol",
        _G,
        restriction("grpc-restricted-protocol", "protocol"),
        (
            "Protocols that require the header triton-grpc-protocol-HEADER with a secret value. "
            "Repeat it per header."
        ),
        path="frontends.grpc.restricted_apis",
        repeated=True,
        metavar="PROTOCOLS:HEADER=VALUE",
    ),
)

_G = "OpenAI"
OPENAI = (
    Flag("allow-openai", _G, boolean, "Serve OpenAI's API.", path="frontends.openai"),
    Flag("openai-address", _G, plain, "Address to bind to.", path="frontends.openai.host"),
    Flag(
        "openai-mount",
        _G,
        boolean,
        "Serve OpenAI's API on the port of the HTTP frontend.",
        path="frontends.openai.mount",
    ),
    Flag("openai-port", _G, integer, "Port (default 9000).", path="frontends.openai.port"),
    Flag(
        "openai-compat",
        _G,
        choice("openai-compat", "openai", "triton"),
        "Error texts, bodies and strictness: those of OpenAI, or of Triton's OpenAI frontend.",
        path="frontends.openai.compat",
    ),
    Flag(
        "openai-restricted-api",
        _G,
        restriction("openai-restricted-api", "api"),
        "APIs that require a header with a secret value. Repeat it per header.",
        path="frontends.openai.restricted_apis",
        repeated=True,
        metavar="APIS:HEADER=VALUE",
    ),
    Flag(
        "default-max-tokens",
        _G,
        positive("default-max-tokens"),
        "max_tokens of requests that have none.",
        path="frontends.openai.default_max_tokens",
    ),
    Flag(
        "lora-separator",
        _G,
        plain,
        "Text between the model and the LoRA adapter in a model name.",
        path="frontends.openai.lora_separator",
    ),
    *_tls("openai", "the OpenAI API", _G),
)
