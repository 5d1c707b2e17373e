"""The gRPC service description: its full name and its methods."""

from __future__ import annotations

from dataclasses import dataclass

from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message

from tritonpy_protos import grpc_service_pb2

_NAME = "GRPCInferenceService"
SERVICE = f"inference.{_NAME}"


@dataclass(frozen=True, slots=True)
class Method:
    """One RPC of the service."""

    name: str
    """As in the .proto file: `ModelInfer`."""
    path: str
    """The `:path` of a call: `/inference.GRPCInferenceService/ModelInfer`."""
    request: type[Message]
    response: type[Message]
    client_streaming: bool
    server_streaming: bool


def _method(found: MethodDescriptor) -> Method:
    request: type[Message] = getattr(grpc_service_pb2, found.input_type.name)
    response: type[Message] = getattr(grpc_service_pb2, found.output_type.name)
    path = f"/{SERVICE}/{found.name}"
    return Method(
        found.name, path, request, response, found.client_streaming, found.server_streaming
    )


METHODS: tuple[Method, ...] = tuple(
    map(_method, grpc_service_pb2.DESCRIPTOR.services_by_name[_NAME].methods)
)
"""Every RPC, in the order of the .proto file."""
