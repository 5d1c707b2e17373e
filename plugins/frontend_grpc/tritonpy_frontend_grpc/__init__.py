"""The inference protocol over gRPC, and grpcio's server for it. Discovery imports this module only; grpc is loaded with that server."""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import hookimpl


@hookimpl
def tritonpy_transports() -> Mapping[str, str]:
    """Offer the transport as `grpcio`."""
    return {"grpcio": "tritonpy_frontend_grpc.transport:GrpcioTransport"}
