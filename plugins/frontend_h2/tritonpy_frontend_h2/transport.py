"""The transport: gRPC in the server's own process, everything else where it always is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from tritonpy import Transport


class H2Transport(Transport):
    """Carries gRPC on HTTP/2 of this package."""

    carries: ClassVar[Mapping[str, str]] = {"grpc": "tritonpy_frontend_h2.frontend:H2GrpcFrontend"}
