"""Server reflection: what services there are, and their descriptions."""

from __future__ import annotations

import grpc
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection, reflection_pb2

from tritonpy_protos import POOL, SERVICE


def add_reflection(server: grpc.aio.Server) -> None:
    """Let `server` describe the inference service, health, and reflection itself."""
    health = health_pb2.DESCRIPTOR.services_by_name["Health"].full_name
    reflection.enable_server_reflection((SERVICE, health, reflection.SERVICE_NAME), server, pool=_described())


def _described() -> DescriptorPool:
    # One pool of its own: the inference service lives in a private one, the two others in protobuf's default.
    pool = DescriptorPool()
    files = [POOL.FindFileByName(name) for name in ("model_config.proto", "grpc_service.proto")]
    for file in (*files, health_pb2.DESCRIPTOR, reflection_pb2.DESCRIPTOR):
        pool.AddSerializedFile(file.serialized_pb)
    return pool
