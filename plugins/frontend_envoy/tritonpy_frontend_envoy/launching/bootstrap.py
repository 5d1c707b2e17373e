"""Envoy's configuration: its listeners, and its own door for us."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritonpy_frontend_envoy.handover import TlsWatch
from tritonpy_frontend_envoy.launching.connections import BUFFER, connection_manager
from tritonpy_frontend_envoy.launching.encryption import Encryption
from tritonpy_frontend_envoy.launching.endpoint import Endpoint
from tritonpy_frontend_envoy.launching.types import typed
from tritonpy_frontend_envoy.options import EnvoyOptions

BACKLOG = 2048
# How large a pattern Envoy compiles: that of readable paths has 117 steps.
_RUNTIME = {"re2.max_program_size.error_level": 200, "re2.max_program_size.warn_level": 200}


@dataclass(frozen=True, slots=True)
class Configuration:
    """What Envoy is started with; `loops` places in it ask pyvoy for an event loop."""

    bootstrap: dict[str, Any]
    admin: str
    loops: int
    tls: list[TlsWatch]


def bootstrap(endpoints: Sequence[Endpoint], options: EnvoyOptions, folder: Path) -> Configuration:
    """Return the configuration for these endpoints; `folder` is ours alone. Raises StartupError where a TLS file is wrong."""
    admin = str(folder / "admin.sock")
    listeners, watches = [], []
    for endpoint in endpoints:
        encryption = Encryption(endpoint, folder) if endpoint.tls.on else None
        http3 = options.http3 and encryption is not None and not endpoint.path
        listeners.append(_listener(endpoint, encryption, http3=http3))
        if encryption is not None:
            watches.append(encryption.watch)
            if http3:
                listeners.append(_datagram_listener(endpoint, encryption))
    document = {
        "node": {"id": "tritonpy", "cluster": "tritonpy"},  # watched files count as a control plane, which wants a name
        "admin": {"address": {"pipe": {"path": admin, "mode": 0o600}}},
        "static_resources": {"listeners": listeners},
        "layered_runtime": {"layers": [{"name": "own", "static_layer": _RUNTIME}]},
        "overload_manager": {"resource_monitors": [_any_number_of_connections()]},
    }
    return Configuration(document, admin, len(listeners), watches)


def _any_number_of_connections() -> dict[str, Any]:
    """Return the limit that Envoy warns about if it has none; each listener has its own, where one is asked for."""
    limit = typed(
        "resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig",
        max_active_downstream_connections=2**31 - 1,
    )
    return {"name": "envoy.resource_monitors.global_downstream_max_connections", "typed_config": limit}


def _listener(endpoint: Endpoint, encryption: Encryption | None, *, http3: bool) -> dict[str, Any]:
    filters = [{"name": "http", "typed_config": connection_manager(endpoint, "AUTO", http3=http3)}]
    if endpoint.options.max_connections:
        limit = typed(
            "filters.network.connection_limit.v3.ConnectionLimit",
            stat_prefix=endpoint.name,
            max_connections=endpoint.options.max_connections,
        )
        filters.insert(0, {"name": "limit", "typed_config": limit})
    chain: dict[str, Any] = {"filters": filters}
    if encryption is not None:
        chain["transport_socket"] = encryption.stream_socket()
    return {
        "name": endpoint.name,
        "address": _address(endpoint, "TCP"),
        "enable_reuse_port": endpoint.options.reuse_port,
        "filter_chains": [chain],
        "per_connection_buffer_limit_bytes": BUFFER,
        "tcp_backlog_size": BACKLOG,
    }


def _datagram_listener(endpoint: Endpoint, encryption: Encryption) -> dict[str, Any]:
    chain = {
        "filters": [{"name": "http", "typed_config": connection_manager(endpoint, "HTTP3")}],
        "transport_socket": encryption.datagram_socket(),
    }
    return {
        "name": f"{endpoint.name}-http3",
        "address": _address(endpoint, "UDP"),
        "udp_listener_config": {"quic_options": {}, "downstream_socket_config": {"prefer_gro": True}},
        "filter_chains": [chain],
    }


def _address(endpoint: Endpoint, protocol: str) -> dict[str, Any]:
    if endpoint.path:
        return {"pipe": {"path": endpoint.path, "mode": int(endpoint.options.socket_mode, 8)}}
    return {"socket_address": {"address": endpoint.host, "port_value": endpoint.port, "protocol": protocol}}
