"""The transport: gRPC on grpcio's server, everything else where it always is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from tritonpy import Transport


class GrpcioTransport(Transport):
    """Carries gRPC on the server of the library grpcio."""

    carries: ClassVar[Mapping[str, str]] = {"grpc": "tritonpy_frontend_grpc.frontend:GrpcFrontend"}
