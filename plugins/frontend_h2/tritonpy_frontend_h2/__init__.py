"""gRPC for tritonpy on an HTTP/2 server of its own, on the server's event loop. Discovery imports this module only."""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import hookimpl


@hookimpl
def tritonpy_frontends() -> Mapping[str, str]:
    """Name the frontend."""
    return {"grpc": "tritonpy_frontend_h2.frontend:H2GrpcFrontend"}
