"""Every RPC but the two of inference, as a function from the engine and a message to a message. Knows no transport.

The engine's structs have the protocol's field names, so they become messages as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec
from google.protobuf.json_format import ParseDict
from google.protobuf.message import Message

from tritonpy import Engine, InvalidArgument, NotFound, Unsupported, named_versions
from tritonpy_frontend_grpc.settings import log_settings, trace_setting
from tritonpy_frontend_grpc.shared_memory import SHARED_MEMORY
from tritonpy_frontend_grpc.version import parse_version
from tritonpy_protos import grpc_service_pb2 as pb

MessageT = TypeVar("MessageT", bound=Message)


def _server_live(engine: Engine, _: pb.ServerLiveRequest) -> pb.ServerLiveResponse:
    return pb.ServerLiveResponse(live=engine.is_live())


def _server_ready(engine: Engine, _: pb.ServerReadyRequest) -> pb.ServerReadyResponse:
    return pb.ServerReadyResponse(ready=engine.is_ready())


def _model_ready(engine: Engine, asked: pb.ModelReadyRequest) -> pb.ModelReadyResponse:
    version = parse_version(asked.version)
    try:
        return pb.ModelReadyResponse(ready=engine.is_model_ready(asked.name, version))
    except (NotFound, InvalidArgument):  # clients ask until the model is there
        return pb.ModelReadyResponse(ready=False)


def model_ready_or_error(engine: Engine, asked: pb.ModelReadyRequest) -> pb.ModelReadyResponse:
    """Answer ModelReady as newer versions of Triton do: raises the error of looking up an unknown model or version."""
    return pb.ModelReadyResponse(ready=engine.is_model_ready(asked.name, parse_version(asked.version)))


def _server_metadata(engine: Engine, _: pb.ServerMetadataRequest) -> pb.ServerMetadataResponse:
    return _message(engine.server_metadata(), pb.ServerMetadataResponse)


def _model_metadata(engine: Engine, asked: pb.ModelMetadataRequest) -> pb.ModelMetadataResponse:
    return _message(engine.model_metadata(asked.name, parse_version(asked.version)), pb.ModelMetadataResponse)


def _model_config(engine: Engine, asked: pb.ModelConfigRequest) -> pb.ModelConfigResponse:
    return pb.ModelConfigResponse(config=engine.model_config(asked.name, parse_version(asked.version)))


def _model_statistics(engine: Engine, asked: pb.ModelStatisticsRequest) -> pb.ModelStatisticsResponse:
    found = engine.statistics(asked.name, parse_version(asked.version))
    return pb.ModelStatisticsResponse(model_stats=[_message(one, pb.ModelStatistics) for one in found])


def _repository_index(engine: Engine, asked: pb.RepositoryIndexRequest) -> pb.RepositoryIndexResponse:
    _refuse_repository_name(asked.repository_name)
    index = engine.repository_index(asked.ready)
    return pb.RepositoryIndexResponse(models=[_message(line, pb.RepositoryIndexResponse.ModelIndex) for line in index])


def _load(engine: Engine, asked: pb.RepositoryModelLoadRequest) -> pb.RepositoryModelLoadResponse:
    _refuse_repository_name(asked.repository_name)
    config: str | None = None
    files: dict[str, bytes] = {}
    versions: list[int] = []
    for key, parameter in asked.parameters.items():
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
    engine.load_model(asked.model_name, config, files or None, versions)
    return pb.RepositoryModelLoadResponse()


def _unload(engine: Engine, asked: pb.RepositoryModelUnloadRequest) -> pb.RepositoryModelUnloadResponse:
    _refuse_repository_name(asked.repository_name)
    dependents = False
    if "unload_dependents" in asked.parameters:
        parameter = asked.parameters["unload_dependents"]
        _expect(parameter, "bool_param", "'unload_dependents' parameter")
        dependents = parameter.bool_param
    versions = _versions(asked.parameters["versions"], "'versions' parameter") if "versions" in asked.parameters else []
    engine.unload_model(asked.model_name, dependents, versions)
    return pb.RepositoryModelUnloadResponse()


def _versions(parameter: pb.ModelRepositoryParameter, what: str) -> list[int]:
    _expect(parameter, "string_param", what)
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
# These wait for models, or for the system to map memory: call them in a thread.
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


def _expect(parameter: pb.ModelRepositoryParameter, choice: str, what: str) -> None:
    if parameter.WhichOneof("parameter_choice") != choice:
        raise InvalidArgument(f"invalid value type for {what}, expected {choice}.")
