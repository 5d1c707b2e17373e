"""Authorization of gRPC calls, and the metadata that a request keeps.

Imported only if the server authenticates, restricts APIs, forwards headers or keeps headers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple

from google.protobuf.message import Message

from tritonpy import InferRequest, Unavailable
from tritonpy.auth import (
    ApiCategory,
    Authorizer,
    HeaderForwarding,
    Restriction,
    Restrictions,
    Verb,
    joined_headers,
    keep_headers,
)
from tritonpy.frontend import Sink
from tritonpy_frontend_grpc.call import Metadata
from tritonpy_frontend_grpc.decode import decode_request
from tritonpy_protos import SERVICE
from tritonpy_protos.grpc_service_pb2 import ModelInferRequest

PREFIX = "triton-grpc-protocol-"
_HEALTH, _REFLECTION = "grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection"


class Rpc(NamedTuple):
    """Category and right of a method, and the message field that names a model, if any."""

    category: ApiCategory
    verb: Verb
    model_field: str = ""


_INFERENCE_RPCS = {
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
    **{f"/{SERVICE}/{name}": rpc for name, rpc in _INFERENCE_RPCS.items()},
    f"/{_HEALTH}/Check": Rpc(ApiCategory.HEALTH, Verb.READ),
    f"/{_HEALTH}/List": Rpc(ApiCategory.HEALTH, Verb.READ),
    f"/{_HEALTH}/Watch": Rpc(ApiCategory.HEALTH, Verb.READ),
    f"/{_REFLECTION}/ServerReflectionInfo": Rpc(ApiCategory.METADATA, Verb.READ),
}
_UNKNOWN_RPC = Rpc(
    ApiCategory.METADATA, Verb.ADMIN
)  # an unlisted method needs the right of administrators


class GrpcAccess:
    """Authorizes the calls of one frontend.

    `check_call` checks every call before its first message. `check_message` or `decode` checks a
    message that names a model.
    """

    def __init__(
        self,
        restrictions: Sequence[Restriction],
        forward_pattern: str,
        authorizer: Authorizer | None,
        kept_headers: frozenset[str] = frozenset(),
        note: Callable[[ApiCategory], None] | None = None,
    ) -> None:
        self._restrictions = Restrictions(restrictions, PREFIX, note)
        self._forwarding = HeaderForwarding(forward_pattern) if forward_pattern else None
        self._kept_headers = kept_headers
        self._authorizer = authorizer

    def check_call(self, path: str, metadata: Metadata) -> None:
        """Raise TritonError for a call that is not allowed.

        Unavailable: the header of a restricted category is missing. Unauthenticated or
        PermissionDenied: the principal is unknown or lacks the right. If the message will name a
        model, only the identity is checked here.
        """
        rpc, headers = RPCS.get(path, _UNKNOWN_RPC), _text_metadata(metadata)
        missing = self._restrictions.missing(rpc.category, headers)
        if missing is not None:
            raise Unavailable(f"This protocol is restricted, expecting header '{missing}'")
        authorizer = self._authorizer_for(rpc)
        if authorizer is not None and rpc.model_field:
            authorizer.identify(joined_headers(headers), rpc.verb)
        elif authorizer is not None:
            authorizer.admit(joined_headers(headers), rpc.verb)

    def check_message(self, path: str, metadata: Metadata, message: Message) -> None:
        """Raise PermissionDenied if the principal has no right to the model in `message`."""
        rpc = RPCS.get(path, _UNKNOWN_RPC)
        authorizer = self._authorizer_for(rpc)
        if authorizer is not None and rpc.model_field:
            authorizer.admit(
                joined_headers(_text_metadata(metadata)),
                rpc.verb,
                getattr(message, rpc.model_field),
            )

    def decode(self, message: ModelInferRequest, sink: Sink, metadata: Metadata) -> InferRequest:
        """Return the authorized request, with forwarded headers.

        Raises like `decode_request` and `check_message`.
        """
        headers, authorizer, principal = _text_metadata(metadata), self._authorizer, None
        if authorizer is not None:
            principal = authorizer.admit(joined_headers(headers), Verb.INFER, message.model_name)
        request = decode_request(message, sink)
        request.principal = principal
        if self._kept_headers:
            keep_headers(headers, self._kept_headers, request)
        if self._forwarding is not None:
            # in the order of gRPC's C++ library
            self._forwarding.apply(sorted(headers, key=itemgetter(0)), request)
        return request

    def _authorizer_for(self, rpc: Rpc) -> Authorizer | None:
        authorizer = self._authorizer
        is_open = (
            authorizer is not None
            and rpc.category is ApiCategory.HEALTH
            and not authorizer.guards("health")
        )
        return None if is_open else authorizer


def _text_metadata(metadata: Metadata) -> list[tuple[str, str]]:
    return [
        (key, value) for key, value in metadata if isinstance(value, str)
    ]  # credentials are never binary
