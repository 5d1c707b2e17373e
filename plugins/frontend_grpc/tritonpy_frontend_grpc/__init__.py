"""The inference protocol over gRPC. Discovery imports this module only; grpc is loaded with the frontend itself."""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import hookimpl


@hookimpl
def tritonpy_frontends() -> Mapping[str, str]:
    """Name the frontend."""
    return {"grpc": "tritonpy_frontend_grpc.frontend:GrpcFrontend"}
