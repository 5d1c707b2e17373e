"""Envoy's configuration: the bootstrap, listeners and clusters.

Source of all names: Envoy's API, version 3 (envoyproxy.io/docs/envoy/latest/api-v3/api).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tritonpy_balance.options import BalanceOptions, ServerAddress
from tritonpy_balance.routes import EXTRACTION, MODEL_HEADER, SERVICE, ServerPool

_TYPE = "type.googleapis.com/envoy"
_MANAGER = f"{_TYPE}.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
_MAX_REQUESTS = 1 << 20
_MAX_CONNECTIONS = 50_000
_FAULTS: dict[str, Any] = {
    "outlier_detection": {
        # only faults of the connection: an overloaded model's 503 says nothing of the server
        "split_external_local_origin_errors": True,
        "consecutive_local_origin_failure": 2,
        "enforcing_consecutive_5xx": 0,
        "enforcing_consecutive_gateway_failure": 0,
        "enforcing_success_rate": 0,
        "enforcing_local_origin_success_rate": 0,
        "interval": "0.5s",
        "base_ejection_time": "2s",
        "max_ejection_percent": 67,
    },
    "circuit_breakers": {
        "thresholds": [
            {
                **dict.fromkeys(
                    ("max_connections", "max_pending_requests", "max_requests"), _MAX_REQUESTS
                ),
                "retry_budget": {"budget_percent": {"value": 100}, "min_retry_concurrency": 1000},
            }
        ]
    },
}
"""Which servers are left out for a while, and how much may be in flight."""
# Routes are chosen again when the name of the model is known.
_LUA = f"""
function envoy_on_request(handle)
  local found = handle:streamInfo():dynamicMetadata():get("{EXTRACTION}")
  if found == nil or found["model_name"] == nil then
    return
  end
  local name = found["model_name"]
  if type(name) == "table" then
    name = name[1]
  end
  if name ~= nil and handle:headers():get("{MODEL_HEADER}") == nil then
    handle:headers():add("{MODEL_HEADER}", name)
    handle:clearRouteCache()
  end
end
"""


def bootstrap(options: BalanceOptions, folder: Path) -> dict[str, Any]:
    """Return the static configuration; clusters and routes are in files of `folder`."""
    document: dict[str, Any] = {
        "node": {"id": "tritonpy-balance", "cluster": "tritonpy"},
        "admin": {"address": {"pipe": {"path": str(folder / "admin.sock"), "mode": 0o600}}},
        "dynamic_resources": {"cds_config": _from_file(folder / "clusters.json")},
        "static_resources": {
            "listeners": listeners(options, folder),
            "clusters": [
                {
                    "name": "admin",
                    "connect_timeout": "1s",
                    "load_assignment": {
                        "cluster_name": "admin",
                        "endpoints": [
                            {
                                "lb_endpoints": [
                                    {
                                        "endpoint": {
                                            "address": {
                                                "pipe": {"path": str(folder / "admin.sock")}
                                            }
                                        }
                                    }
                                ]
                            }
                        ],
                    },
                }
            ],
        },
        "overload_manager": {
            "resource_monitors": [
                {
                    "name": "envoy.resource_monitors.global_downstream_max_connections",
                    "typed_config": {
                        "@type": f"{_TYPE}.extensions.resource_monitors.downstream_connections.v3."
                        "DownstreamConnectionsConfig",
                        "max_active_downstream_connections": _MAX_CONNECTIONS,
                    },
                }
            ]
        },
    }
    return document


def listeners(options: BalanceOptions, folder: Path) -> list[dict[str, Any]]:
    """Return the port for clients, again for HTTP/3 if there is TLS, and the port for metrics."""
    routes = {
        "rds": {"route_config_name": "servers", "config_source": _from_file(folder / "routes.json")}
    }
    tcp: dict[str, Any] = {"filters": [_manager(options, folder, routes, "AUTO")]}
    found = [_listener("clients", options.host, options.port, tcp, options)]
    if options.certificate:
        tcp["transport_socket"] = _downstream_tls(options, ["h2", "http/1.1"])
        if options.http3:
            chain = {
                "filters": [_manager(options, folder, routes, "HTTP3")],
                "transport_socket": {
                    "name": "envoy.transport_sockets.quic",
                    "typed_config": {
                        "@type": f"{_TYPE}.extensions.transport_sockets.quic.v3."
                        "QuicDownstreamTransport",
                        "downstream_tls_context": _tls_context(options, ["h3"]),
                    },
                },
            }
            quic = _listener("quic", options.host, options.port, chain, options)
            quic["address"]["socket_address"]["protocol"] = "UDP"
            quic["udp_listener_config"] = {"quic_options": {}}
            found.append(quic)
    if options.metrics_port:
        chain = {"filters": [_metrics_manager()]}
        found.append(_listener("metrics", options.host, options.metrics_port, chain, options))
    return found


def _listener(
    name: str, host: str, port: int, chain: dict[str, Any], options: BalanceOptions
) -> dict[str, Any]:
    return {
        "name": name,
        "address": {"socket_address": {"address": host, "port_value": port}},
        "per_connection_buffer_limit_bytes": max(options.retry_buffer, 1 << 20),
        "filter_chains": [chain],
    }


def _manager(
    options: BalanceOptions, folder: Path, routes: dict[str, Any], codec: str
) -> dict[str, Any]:
    config: dict[str, Any] = {
        "@type": _MANAGER,
        "stat_prefix": "clients",
        "codec_type": codec,
        "stream_idle_timeout": "0s",
        "use_remote_address": True,
        "drain_timeout": f"{options.drain_s}s",
        "http_filters": [
            {
                "name": EXTRACTION,
                "typed_config": {
                    "@type": f"{_TYPE}.extensions.filters.http.grpc_field_extraction.v3."
                    "GrpcFieldExtractionConfig",
                    "descriptor_set": {"filename": str(folder / "protocol.binpb")},
                    "extractions_by_method": {
                        f"{SERVICE.strip('/').replace('/', '.')}.ModelInfer": {
                            "request_field_extractions": {"model_name": {}}
                        }
                    },
                },
            },
            {
                "name": "envoy.filters.http.lua",
                "typed_config": {
                    "@type": f"{_TYPE}.extensions.filters.http.lua.v3.Lua",
                    "default_source_code": {"inline_string": _LUA},
                },
            },
            {
                "name": "envoy.filters.http.router",
                "typed_config": {"@type": f"{_TYPE}.extensions.filters.http.router.v3.Router"},
            },
        ],
        **routes,
    }
    if codec == "HTTP3":
        config["http3_protocol_options"] = {}
    if options.access_log:
        config["access_log"] = [_access_log(options.access_log)]
    return {"name": "envoy.filters.network.http_connection_manager", "typed_config": config}


def _access_log(path: str) -> dict[str, Any]:
    fields = {
        "time": "%START_TIME%", "method": "%REQ(:METHOD)%", "path": "%REQ(:PATH)%",
        "model": f"%REQ({MODEL_HEADER})%", "protocol": "%PROTOCOL%", "status": "%RESPONSE_CODE%",
        "grpc_status": "%GRPC_STATUS_NUMBER%", "flags": "%RESPONSE_FLAGS%",
        "duration_ms": "%DURATION%", "attempts": "%UPSTREAM_REQUEST_ATTEMPT_COUNT%",
        "server": "%UPSTREAM_HOST%", "client": "%DOWNSTREAM_REMOTE_ADDRESS%",
        "received": "%BYTES_RECEIVED%", "sent": "%BYTES_SENT%", "request_id": "%REQ(X-REQUEST-ID)%",
    }  # fmt: skip
    return {
        "name": "envoy.access_loggers.file",
        "typed_config": {
            "@type": f"{_TYPE}.extensions.access_loggers.file.v3.FileAccessLog",
            "path": "/dev/stdout" if path == "-" else path,
            "log_format": {"json_format": fields},
        },
    }


def _metrics_manager() -> dict[str, Any]:
    route = {
        "match": {"path": "/metrics"},
        "route": {"cluster": "admin", "prefix_rewrite": "/stats/prometheus"},
    }
    config = {
        "@type": _MANAGER,
        "stat_prefix": "metrics",
        "route_config": {
            "virtual_hosts": [{"name": "metrics", "domains": ["*"], "routes": [route]}]
        },
        "http_filters": [
            {
                "name": "envoy.filters.http.router",
                "typed_config": {"@type": f"{_TYPE}.extensions.filters.http.router.v3.Router"},
            }
        ],
    }
    return {"name": "envoy.filters.network.http_connection_manager", "typed_config": config}


def _downstream_tls(options: BalanceOptions, protocols: list[str]) -> dict[str, Any]:
    return {
        "name": "envoy.transport_sockets.tls",
        "typed_config": {
            "@type": f"{_TYPE}.extensions.transport_sockets.tls.v3.DownstreamTlsContext",
            **_tls_context(options, protocols),
        },
    }


def _tls_context(options: BalanceOptions, protocols: list[str]) -> dict[str, Any]:
    common: dict[str, Any] = {
        "alpn_protocols": protocols,
        "tls_certificates": [
            {
                "certificate_chain": {"filename": options.certificate},
                "private_key": {"filename": options.key},
            }
        ],
    }
    context: dict[str, Any] = {"common_tls_context": common}
    if options.client_ca:
        common["validation_context"] = {"trusted_ca": {"filename": options.client_ca}}
        context["require_client_certificate"] = True
    return context


def clusters(pools: Sequence[ServerPool], options: BalanceOptions) -> dict[str, Any]:
    """Return the clusters of all pools as Envoy reads them from a file."""
    resources = [_cluster(pool, kind, options) for pool in pools for kind in ("http", "grpc")]
    return _response("cluster.v3.Cluster", resources)


def routes_file(configuration: dict[str, Any]) -> dict[str, Any]:
    """Return a route configuration as Envoy reads it from a file."""
    return _response("route.v3.RouteConfiguration", [configuration])


def _response(kind: str, resources: list[dict[str, Any]]) -> dict[str, Any]:
    return {"resources": [{"@type": f"{_TYPE}.config.{kind}", **each} for each in resources]}


def _cluster(pool: ServerPool, kind: str, options: BalanceOptions) -> dict[str, Any]:
    is_grpc = kind == "grpc"
    name = f"{kind}-{pool.name}"
    protocol: dict[str, Any] = {"http_protocol_options": {}}
    if is_grpc:
        protocol = {
            "http2_protocol_options": {"connection_keepalive": {"interval": "5s", "timeout": "3s"}}
        }
    cluster: dict[str, Any] = {
        "name": name,
        "type": "STRICT_DNS",
        "connect_timeout": "1s",
        "load_assignment": {
            "cluster_name": name,
            "endpoints": [{"lb_endpoints": [_endpoint(each, is_grpc) for each in pool.backends]}],
        },
        "typed_extension_protocol_options": {
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
                "@type": f"{_TYPE}.extensions.upstreams.http.v3.HttpProtocolOptions",
                "explicit_http_config": protocol,
            }
        },
        "health_checks": [_health_check(is_grpc, options)],
        **_FAULTS,
        # A machine that vanished sends no reset: its connections end after about five seconds.
        "upstream_connection_options": {
            "tcp_keepalive": {"keepalive_probes": 3, "keepalive_time": 2, "keepalive_interval": 1}
        },
        "upstream_bind_config": {
            "socket_options": [
                {"description": "TCP_USER_TIMEOUT", "level": 6, "name": 18, "int_value": 5000}
            ]
        },
        **_policy(pool, options),
    }  # fmt: skip
    if options.server_tls:
        cluster["transport_socket"] = _upstream_tls(pool, options, is_grpc)
    return cluster


def _policy(pool: ServerPool, options: BalanceOptions) -> dict[str, Any]:
    # Envoy otherwise keeps calling a failed server for up to a second.
    common = {"healthy_panic_threshold": {"value": 0}, "update_merge_window": "0s"}
    slow = {"slow_start_config": {"slow_start_window": f"{options.slow_start_s}s"}}
    if not options.slow_start_s:
        slow = {}
    if pool.sticky:
        return {"lb_policy": "RING_HASH", "common_lb_config": common}
    if options.policy == "round-robin":
        return {
            "lb_policy": "ROUND_ROBIN", "round_robin_lb_config": slow, "common_lb_config": common
        }  # fmt: skip
    if options.policy == "least-request":
        return {
            "lb_policy": "LEAST_REQUEST",
            "least_request_lb_config": slow,
            "common_lb_config": common,
        }
    weighted = {
        "@type": f"{_TYPE}.extensions.load_balancing_policies.client_side_weighted_round_robin.v3."
        "ClientSideWeightedRoundRobin",
        "blackout_period": "1s",
        "weight_expiration_period": "60s",
        "weight_update_period": "1s",
        **slow,
    }
    policy = {
        "name": "envoy.load_balancing_policies.client_side_weighted_round_robin",
        "typed_config": weighted,
    }
    return {
        "load_balancing_policy": {"policies": [{"typed_extension_config": policy}]},
        "common_lb_config": common,
    }


def _endpoint(backend: ServerAddress, is_grpc: bool) -> dict[str, Any]:
    port = backend.grpc if is_grpc else backend.http
    return {
        "endpoint": {"address": {"socket_address": {"address": backend.host, "port_value": port}}}
    }


def _health_check(is_grpc: bool, options: BalanceOptions) -> dict[str, Any]:
    check: dict[str, Any] = {
        "timeout": "1s",
        "interval": f"{options.health_interval_s}s",
        "no_traffic_interval": f"{options.health_interval_s}s",
        "unhealthy_threshold": 2,
        "healthy_threshold": 1,
        # a server that stops waits for connections in use
        "reuse_connection": False,
    }
    if is_grpc:
        check["grpc_health_check"] = {}
    else:
        check["http_health_check"] = {"path": "/v2/health/ready"}
    return check


def _upstream_tls(pool: ServerPool, options: BalanceOptions, is_grpc: bool) -> dict[str, Any]:
    """Return how connections to servers are encrypted, and what their certificates must have.

    That is the name of the options, or the server's own name. Addresses have none to compare.
    """
    validation: dict[str, Any] = {"system_root_certs": {}}
    if options.server_ca:
        validation = {"trusted_ca": {"filename": options.server_ca}}
    context: dict[str, Any] = {
        "@type": f"{_TYPE}.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
        "common_tls_context": {
            "alpn_protocols": ["h2"] if is_grpc else ["http/1.1"],
            "validation_context": validation,
        },
    }
    if options.server_name:
        context["sni"] = options.server_name
        expected = {"san_type": "DNS", "matcher": {"exact": options.server_name}}
        validation["match_typed_subject_alt_names"] = [expected]
    elif not any(_is_address(backend.host) for backend in pool.backends):
        context |= {"auto_host_sni": True, "auto_sni_san_validation": True}
    return {"name": "envoy.transport_sockets.tls", "typed_config": context}


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _from_file(path: Path) -> dict[str, Any]:
    return {
        "path_config_source": {
            "path": str(path), "watched_directory": {"path": str(path.parent)}
        },
        "resource_api_version": "V3",
    }  # fmt: skip
