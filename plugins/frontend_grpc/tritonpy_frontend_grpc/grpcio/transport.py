"""The transport that serves gRPC on grpcio."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from tritonpy.frontend import Transport


class GrpcioTransport(Transport):
    """Serves gRPC on grpcio's server; all other protocols stay on the default transport."""

    carries: ClassVar[Mapping[str, str]] = {
        "grpc": "tritonpy_frontend_grpc.grpcio.frontend:GrpcFrontend"
    }
