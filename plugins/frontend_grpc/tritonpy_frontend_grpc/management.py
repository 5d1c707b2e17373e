"""All RPCs except inference, as functions of the engine and a request message.

Independent of the transport. The engine's structs have the field names of the protocol, so they
convert to messages directly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec
from google.protobuf.json_format import ParseDict
from google.protobuf.message import Message

from tritonpy import Engine, InvalidArgument, NotFound, Unsupported
from tritonpy.repository import named_versions
from tritonpy_frontend_grpc.settings import log_settings, trace_setting
from tritonpy_frontend_grpc.shared_memory import SHARED_MEMORY
from tritonpy_frontend_grpc.version import parse_version
from tritonpy_protos import grpc_service_pb2 as pb

MessageT = TypeVar("MessageT", bound=Message)


def _server_live(engine: Engine, _: pb.ServerLiveRequest) -> pb.ServerLiveResponse:
    return pb.ServerLiveResponse(live=engine.is_live())


def _server_ready(engine: Engine, _: pb.ServerReadyRequest) -> pb.ServerReadyResponse:
    return pb.ServerReadyResponse(ready=engine.is_ready())


def _model_ready(engine: Engine, message: pb.ModelReadyRequest) -> pb.ModelReadyResponse:
    version = parse_version(message.version)
    try:
        return pb.ModelReadyResponse(ready=engine.is_model_ready(message.name, version))
    except (NotFound, InvalidArgument):  # clients poll until the model is ready
        return pb.ModelReadyResponse(ready=False)


def model_ready_or_error(engine: Engine, message: pb.ModelReadyRequest) -> pb.ModelReadyResponse:
    """Return ModelReady as newer Tritons do.

    Raises NotFound or InvalidArgument for an unknown model.
    """
    return pb.ModelReadyResponse(
        ready=engine.is_model_ready(message.name, parse_version(message.version))
    )


def _server_metadata(engine: Engine, _: pb.ServerMetadataRequest) -> pb.ServerMetadataResponse:
    return _message(engine.server_metadata(), pb.ServerMetadataResponse)


def _model_metadata(engine: Engine, message: pb.ModelMetadataRequest) -> pb.ModelMetadataResponse:
    return _message(
        engine.model_metadata(message.name, parse_version(message.version)),
        pb.ModelMetadataResponse,
    )


def _model_config(engine: Engine, message: pb.ModelConfigRequest) -> pb.ModelConfigResponse:
    return pb.ModelConfigResponse(
        config=engine.model_config(message.name, parse_version(message.version))
    )


def _model_statistics(
    engine: Engine, message: pb.ModelStatisticsRequest
) -> pb.ModelStatisticsResponse:
    found = engine.statistics(message.name, parse_version(message.version))
    return pb.ModelStatisticsResponse(
        model_stats=[_message(statistics, pb.ModelStatistics) for statistics in found]
    )


def _repository_index(
    engine: Engine, message: pb.RepositoryIndexRequest
) -> pb.RepositoryIndexResponse:
    _refuse_repository_name(message.repository_name)
    index = engine.repository_index(message.ready)
    return pb.RepositoryIndexResponse(
        models=[_message(line, pb.RepositoryIndexResponse.ModelIndex) for line in index]
    )


def _load(engine: Engine, message: pb.RepositoryModelLoadRequest) -> pb.RepositoryModelLoadResponse:
    _refuse_repository_name(message.repository_name)
    config: str | None = None
    files: dict[str, bytes] = {}
    versions: list[int] = []
    for key, parameter in message.parameters.items():
        if key == "config":
            _expect(parameter, "string_param", f"load parameter '{key}'")
            config = parameter.string_param
        elif key.startswith("file:"):
            _expect(parameter, "bytes_param", f"load parameter '{key}'")
            files[key] = parameter.bytes_param
        elif key == "versions":
            versions = _versions(parameter, "load parameter 'versions'")
        else:
            raise InvalidArgument(f"unrecognized load parameter '{key}'.")
    engine.load_model(message.model_name, config, files or None, versions)
    return pb.RepositoryModelLoadResponse()


def _unload(
    engine: Engine, message: pb.RepositoryModelUnloadRequest
) -> pb.RepositoryModelUnloadResponse:
    _refuse_repository_name(message.repository_name)
    dependents = False
    if "unload_dependents" in message.parameters:
        parameter = message.parameters["unload_dependents"]
        _expect(parameter, "bool_param", "'unload_dependents' parameter")
        dependents = parameter.bool_param
    versions = (
        _versions(message.parameters["versions"], "'versions' parameter")
        if "versions" in message.parameters
        else []
    )
    engine.unload_model(message.model_name, dependents, versions)
    return pb.RepositoryModelUnloadResponse()


def _versions(parameter: pb.ModelRepositoryParameter, name: str) -> list[int]:
    _expect(parameter, "string_param", name)
    return named_versions(parameter.string_param)


MANAGEMENT: Mapping[str, Callable[[Engine, Any], Message]] = {
    "ServerLive": _server_live,
    "ServerReady": _server_ready,
    "ModelReady": _model_ready,
    "ServerMetadata": _server_metadata,
    "ModelMetadata": _model_metadata,
    "ModelConfig": _model_config,
    "ModelStatistics": _model_statistics,
    "RepositoryIndex": _repository_index,
    "RepositoryModelLoad": _load,
    "RepositoryModelUnload": _unload,
    "TraceSetting": trace_setting,
    "LogSettings": log_settings,
    **SHARED_MEMORY,
}
# These wait for models or for memory to be mapped, so they run in threads.
BLOCKING = frozenset(
    {
        "ModelReady",
        "TraceSetting",
        "RepositoryModelLoad",
        "RepositoryModelUnload",
        "SystemSharedMemoryRegister",
        "CudaSharedMemoryRegister",
    }
)


def _message(struct: msgspec.Struct, kind: type[MessageT]) -> MessageT:
    return ParseDict(msgspec.to_builtins(struct), kind(), ignore_unknown_fields=True)


def _refuse_repository_name(name: str) -> None:
    if name:
        raise Unsupported("'repository_name' specification is not supported")


def _expect(parameter: pb.ModelRepositoryParameter, choice: str, name: str) -> None:
    if parameter.WhichOneof("parameter_choice") != choice:
        raise InvalidArgument(f"invalid value type for {name}, expected {choice}.")
