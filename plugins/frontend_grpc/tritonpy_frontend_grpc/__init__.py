"""The inference protocol over gRPC, on an HTTP/2 server in the process or on grpcio's.

The shared protocol code is at the top, each transport in a package: `h2`, the default, and
`grpcio`. Discovery imports only this module; `grpc` is imported with the transport `grpcio`.
"""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import hookimpl


@hookimpl
def tritonpy_frontends() -> Mapping[str, str]:
    """Register the frontend `grpc`."""
    return {"grpc": "tritonpy_frontend_grpc.h2.frontend:H2GrpcFrontend"}


@hookimpl
def tritonpy_transports() -> Mapping[str, str]:
    """Register the transport `grpcio`."""
    return {"grpcio": "tritonpy_frontend_grpc.grpcio.transport:GrpcioTransport"}
