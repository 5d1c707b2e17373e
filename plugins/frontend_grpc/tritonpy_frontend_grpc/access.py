"""Who may make which gRPC call, and what a request keeps of its metadata. Made only where something restricts, forwards, keeps or authenticates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple

from google.protobuf.message import Message

from tritonpy import (
    ApiCategory,
    Gatekeeper,
    HeaderForwarding,
    InferRequest,
    Restriction,
    Restrictions,
    Sink,
    Unavailable,
    Verb,
    joined_headers,
    keep_headers,
)
from tritonpy_frontend_grpc.call import Metadata
from tritonpy_frontend_grpc.decode import decode_request
from tritonpy_protos import SERVICE
from tritonpy_protos.grpc_service_pb2 import ModelInferRequest

PREFIX = "triton-grpc-protocol-"
_HEALTH, _REFLECTION = "grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection"


class Rpc(NamedTuple):
    """What a method is: its category, the right it takes, and the field of its message that names a model, if one does."""

    category: ApiCategory
    verb: Verb
    model_field: str = ""


_OWN = {
    "ServerLive": Rpc(ApiCategory.HEALTH, Verb.READ),
    "ServerReady": Rpc(ApiCategory.HEALTH, Verb.READ),
    "ModelReady": Rpc(ApiCategory.HEALTH, Verb.READ, "name"),
    "ServerMetadata": Rpc(ApiCategory.METADATA, Verb.READ),
    "ModelMetadata": Rpc(ApiCategory.METADATA, Verb.READ, "name"),
    "ModelInfer": Rpc(ApiCategory.INFERENCE, Verb.INFER, "model_name"),
    "ModelStreamInfer": Rpc(ApiCategory.INFERENCE, Verb.INFER, "model_name"),
    "ModelConfig": Rpc(ApiCategory.MODEL_CONFIG, Verb.READ, "name"),
    "ModelStatistics": Rpc(ApiCategory.STATISTICS, Verb.READ, "name"),
    "RepositoryIndex": Rpc(ApiCategory.MODEL_REPOSITORY, Verb.READ),
    "RepositoryModelLoad": Rpc(ApiCategory.MODEL_REPOSITORY, Verb.MANAGE, "model_name"),
    "RepositoryModelUnload": Rpc(ApiCategory.MODEL_REPOSITORY, Verb.MANAGE, "model_name"),
    "SystemSharedMemoryStatus": Rpc(ApiCategory.SHARED_MEMORY, Verb.ADMIN),
    "SystemSharedMemoryRegister": Rpc(ApiCategory.SHARED_MEMORY, Verb.ADMIN),
    "SystemSharedMemoryUnregister": Rpc(ApiCategory.SHARED_MEMORY, Verb.ADMIN),
    "CudaSharedMemoryStatus": Rpc(ApiCategory.SHARED_MEMORY, Verb.ADMIN),
    "CudaSharedMemoryRegister": Rpc(ApiCategory.SHARED_MEMORY, Verb.ADMIN),
    "CudaSharedMemoryUnregister": Rpc(ApiCategory.SHARED_MEMORY, Verb.ADMIN),
    "TraceSetting": Rpc(ApiCategory.TRACE, Verb.ADMIN, "model_name"),
    "LogSettings": Rpc(ApiCategory.LOGGING, Verb.ADMIN),
}
RPCS: Mapping[str, Rpc] = {
    **{f"/{SERVICE}/{name}": rpc for name, rpc in _OWN.items()},
    f"/{_HEALTH}/Check": Rpc(ApiCategory.HEALTH, Verb.READ),
    f"/{_HEALTH}/List": Rpc(ApiCategory.HEALTH, Verb.READ),
    f"/{_HEALTH}/Watch": Rpc(ApiCategory.HEALTH, Verb.READ),
    f"/{_REFLECTION}/ServerReflectionInfo": Rpc(ApiCategory.METADATA, Verb.READ),
}
_UNKNOWN = Rpc(ApiCategory.METADATA, Verb.ADMIN)  # a method that the table lacks is for those who may do everything


class GrpcAccess:
    """The doorkeeper of one frontend. Every call passes `enter` before its first message; what names a model passes once more with it."""

    def __init__(
        self,
        restrictions: Sequence[Restriction],
        forward_pattern: str,
        gatekeeper: Gatekeeper | None,
        kept_headers: frozenset[str] = frozenset(),
        note: Callable[[ApiCategory], None] | None = None,
    ) -> None:
        self._restrictions = Restrictions(restrictions, PREFIX, note)
        self._forwarding = HeaderForwarding(forward_pattern) if forward_pattern else None
        self._kept_headers = kept_headers
        self._gatekeeper = gatekeeper

    def enter(self, path: str, metadata: Metadata) -> None:
        """Raise Unavailable for a call that lacks the header of its category, Unauthenticated or PermissionDenied for its caller.

        Where the message will name a model, the caller has to be known, and its right is asked for when the message is there.
        """
        rpc, headers = RPCS.get(path, _UNKNOWN), _texts(metadata)
        missing = self._restrictions.missing(rpc.category, headers)
        if missing is not None:
            raise Unavailable(f"This protocol is restricted, expecting header '{missing}'")
        gatekeeper = self._guarding(rpc)
        if gatekeeper is not None and rpc.model_field:
            gatekeeper.identify(joined_headers(headers), rpc.verb)
        elif gatekeeper is not None:
            gatekeeper.admit(joined_headers(headers), rpc.verb)

    def admit(self, path: str, metadata: Metadata, message: Message) -> None:
        """Raise PermissionDenied where the caller has no right to the model that `message` names."""
        rpc = RPCS.get(path, _UNKNOWN)
        gatekeeper = self._guarding(rpc)
        if gatekeeper is not None and rpc.model_field:
            gatekeeper.admit(joined_headers(_texts(metadata)), rpc.verb, getattr(message, rpc.model_field))

    def decode(self, message: ModelInferRequest, sink: Sink, metadata: Metadata) -> InferRequest:
        """Return the request of a caller who may infer with its model, forwarded headers included; raises as `decode_request` does too."""
        headers, gatekeeper, principal = _texts(metadata), self._gatekeeper, None
        if gatekeeper is not None:
            principal = gatekeeper.admit(joined_headers(headers), Verb.INFER, message.model_name)
        request = decode_request(message, sink)
        request.principal = principal
        if self._kept_headers:
            keep_headers(headers, self._kept_headers, request)
        if self._forwarding is not None:
            # in the order in which gRPC's library for C++ keeps them
            self._forwarding.apply(sorted(headers, key=itemgetter(0)), request)
        return request

    def _guarding(self, rpc: Rpc) -> Gatekeeper | None:
        gatekeeper = self._gatekeeper
        is_open = gatekeeper is not None and rpc.category is ApiCategory.HEALTH and not gatekeeper.guards("health")
        return None if is_open else gatekeeper


def _texts(metadata: Metadata) -> list[tuple[str, str]]:
    return [(key, value) for key, value in metadata if isinstance(value, str)]  # binary metadata is nobody's credential
