"""The frontends' options on connections and heads, in Envoy's words."""

from __future__ import annotations

import json
import math
from typing import Any

from pyvoy._server import _dynamic_module_config as pyvoy_module

from tritonpy_frontend_envoy.launching.endpoint import Endpoint
from tritonpy_frontend_envoy.launching.refusals import local_replies, path_filter, refusal_lines, routes
from tritonpy_frontend_envoy.launching.types import typed

APPLICATIONS = "tritonpy_frontend_envoy.embedded.applications"
# Bytes of a body that Envoy takes before we asked for more, and of answers that a slow client has not read.
BUFFER = 1024 * 1024
_MOST_STREAMS = 2**31 - 1
_LARGEST_HEAD_KIB = 8192
_SOON_S = 0.001  # 0 would mean never
_GRPC_HEAD_KIB = 64
_GRACE_S = 5  # Envoy's own


def connection_manager(endpoint: Endpoint, codec: str, *, http3: bool = False) -> dict[str, Any]:
    """Return how connections become requests, and who answers them; `codec` is Envoy's word for the versions of HTTP.

    With `http3` the answers tell clients that it is spoken on the same port.
    """
    hosts = [{"name": "all", "domains": ["*"], "routes": routes()}]
    return typed(
        "filters.network.http_connection_manager.v3.HttpConnectionManager",
        codec_type=codec,
        stat_prefix=endpoint.name,
        route_config={"virtual_hosts": hosts},
        http_filters=[*([_advertisement(endpoint)] if http3 else []), path_filter(), _application(endpoint)],
        common_http_protocol_options=_common(endpoint),
        http_protocol_options={
            "accept_http_10": True,
            "default_host_for_http_10": "localhost",
            "ignore_http_11_upgrade": [{"safe_regex": {"regex": ".*"}}],
        },
        http2_protocol_options=_http2(endpoint),
        max_request_headers_kb=_head_kib(endpoint),
        # How long a request may take is the model's affair; bodies that stand still are ended by those who read them.
        stream_idle_timeout="0s",
        request_headers_timeout=f"{_head_timeout(endpoint)}s",
        stream_flush_timeout=f"{_flush_timeout(endpoint)}s",
        drain_timeout=f"{_drain_timeout(endpoint)}s",
        generate_request_id=False,
        server_header_transformation="PASS_THROUGH",
        skip_xff_append=True,
        local_reply_config=local_replies(),
        access_log=[refusal_lines()],
    )


def _advertisement(endpoint: Endpoint) -> dict[str, Any]:
    header = {"key": "alt-svc", "value": f'h3=":{endpoint.port}"; ma=86400'}
    mutations = {"response_mutations": [{"append": {"header": header}}]}
    return {
        "name": "http3",
        "typed_config": typed("filters.http.header_mutation.v3.HeaderMutation", mutations=mutations),
    }


def _application(endpoint: Endpoint) -> dict[str, Any]:
    told = {"app": f"{APPLICATIONS}:{endpoint.name}", "interface": "asgi", "lifespan": False, "loop": "asyncio"}
    module = typed(
        "filters.http.dynamic_modules.v3.DynamicModuleFilter",
        dynamic_module_config=pyvoy_module(),
        filter_name="pyvoy",
        terminal_filter=True,
        filter_config={"@type": "type.googleapis.com/google.protobuf.StringValue", "value": json.dumps(told)},
    )
    return {"name": "pyvoy", "typed_config": module}


def _common(endpoint: Endpoint) -> dict[str, Any]:
    http, grpc = endpoint.http, endpoint.grpc
    common: dict[str, Any] = {"idle_timeout": "0s"}  # never
    if grpc is not None:
        if grpc.max_connection_idle_ms:
            common["idle_timeout"] = f"{grpc.max_connection_idle_ms / 1000}s"
        if grpc.max_connection_age_ms:
            common["max_connection_duration"] = f"{grpc.max_connection_age_ms / 1000}s"
    if http is not None:
        common["idle_timeout"] = f"{http.keep_alive_s or _SOON_S}s"
        common["max_headers_count"] = http.max_headers
    return common


def _http2(endpoint: Endpoint) -> dict[str, Any]:
    options: dict[str, Any] = {"max_concurrent_streams": _MOST_STREAMS, "allow_connect": False}
    grpc = endpoint.grpc
    if grpc is not None:
        interval, timeout = grpc.keepalive_time_ms / 1000, max(grpc.keepalive_timeout_ms / 1000, _SOON_S)
        options["connection_keepalive"] = {"interval": f"{max(interval, _SOON_S)}s", "timeout": f"{timeout}s"}
    return options


def _head_kib(endpoint: Endpoint) -> int:
    if endpoint.http is None:
        return _GRPC_HEAD_KIB
    return min(math.ceil(endpoint.http.max_head_size / 1024), _LARGEST_HEAD_KIB)


def _head_timeout(endpoint: Endpoint) -> float:
    return endpoint.grpc.handshake_timeout_ms / 1000 if endpoint.http is None else endpoint.http.head_timeout_s


def _drain_timeout(endpoint: Endpoint) -> float:
    """Return what calls get that are open when their connection comes of age."""
    grace_ms = 0 if endpoint.grpc is None else endpoint.grpc.max_connection_age_grace_ms
    return grace_ms / 1000 or _GRACE_S


def _flush_timeout(endpoint: Endpoint) -> float:
    return 0 if endpoint.http is None else endpoint.http.body_timeout_s
