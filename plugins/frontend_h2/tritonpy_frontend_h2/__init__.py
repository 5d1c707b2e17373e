"""The gRPC frontend on the built-in HTTP/2 server. Discovery imports only this module."""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import hookimpl


@hookimpl
def tritonpy_frontends() -> Mapping[str, str]:
    """Register the frontend `grpc`."""
    return {"grpc": "tritonpy_frontend_h2.frontend:H2GrpcFrontend"}
