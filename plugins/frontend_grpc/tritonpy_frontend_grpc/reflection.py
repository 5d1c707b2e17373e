"""Server reflection: the list of services and their descriptors."""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor_pool import DescriptorPool
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection, reflection_pb2
from grpc_reflection.v1alpha.reflection_pb2_grpc import add_ServerReflectionServicer_to_server

from tritonpy_protos import POOL, SERVICE


def add_reflection(server: Any) -> None:
    """Add reflection of the inference, health and reflection services to a grpc.aio server."""
    add_ServerReflectionServicer_to_server(reflection_servicer(), server)


def reflection_servicer() -> Any:
    """Return the servicer for reflection calls."""
    health = health_pb2.DESCRIPTOR.services_by_name["Health"].full_name
    names = (SERVICE, health, reflection.SERVICE_NAME)
    return reflection.aio.ReflectionServicer(names, pool=_descriptor_pool())  # type: ignore[attr-defined]


def _descriptor_pool() -> DescriptorPool:
    # A separate pool: the inference service is in a private pool, the others in protobuf's default.
    pool = DescriptorPool()
    files = [POOL.FindFileByName(name) for name in ("model_config.proto", "grpc_service.proto")]
    for file in (*files, health_pb2.DESCRIPTOR, reflection_pb2.DESCRIPTOR):
        pool.AddSerializedFile(file.serialized_pb)
    return pool
