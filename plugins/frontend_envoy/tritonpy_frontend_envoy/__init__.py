"""HTTP/REST and gRPC for tritonpy on one Envoy process that embeds Python."""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import hookimpl


@hookimpl
def tritonpy_transports() -> Mapping[str, str]:
    """Offer the transport as `envoy`; its module is imported when a server is started with it."""
    return {"envoy": "tritonpy_frontend_envoy.transport:EnvoyTransport"}
