"""The inference protocol over gRPC, and a frontend on grpcio's server.

Discovery imports only this module; grpc is imported with that frontend.
"""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import hookimpl


@hookimpl
def tritonpy_transports() -> Mapping[str, str]:
    """Register the transport `grpcio`."""
    return {"grpcio": "tritonpy_frontend_grpc.transport:GrpcioTransport"}
