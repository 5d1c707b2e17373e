"""Server reflection: what services there are, and their descriptions."""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor_pool import DescriptorPool
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection, reflection_pb2
from grpc_reflection.v1alpha.reflection_pb2_grpc import add_ServerReflectionServicer_to_server

from tritonpy_protos import POOL, SERVICE


def add_reflection(server: Any) -> None:
    """Let a grpc.aio server describe the inference service, health, and reflection itself."""
    add_ServerReflectionServicer_to_server(reflection_servicer(), server)


def reflection_servicer() -> Any:
    """Return what answers the calls of reflection."""
    health = health_pb2.DESCRIPTOR.services_by_name["Health"].full_name
    names = (SERVICE, health, reflection.SERVICE_NAME)
    return reflection.aio.ReflectionServicer(names, pool=_described())  # type: ignore[attr-defined]


def _described() -> DescriptorPool:
    # One pool of its own: the inference service lives in a private one, the two others in protobuf's default.
    pool = DescriptorPool()
    files = [POOL.FindFileByName(name) for name in ("model_config.proto", "grpc_service.proto")]
    for file in (*files, health_pb2.DESCRIPTOR, reflection_pb2.DESCRIPTOR):
        pool.AddSerializedFile(file.serialized_pb)
    return pool
