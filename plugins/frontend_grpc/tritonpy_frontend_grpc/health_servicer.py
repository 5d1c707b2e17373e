"""The standard health service on grpc.aio."""

from __future__ import annotations

from grpc_health.v1.health_pb2_grpc import HealthServicer

from tritonpy_frontend_grpc.health import Health


class AioHealth(Health, HealthServicer):  # type: ignore[misc]  # the library has no types
    """Serves `Health` on grpc.aio.

    The base class from grpcio rejects methods that newer protocol versions add.
    """
