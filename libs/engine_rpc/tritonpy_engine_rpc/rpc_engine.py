"""An engine that calls the engine of another process."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from tritonpy import (
    CudaRegion,
    Engine,
    FamilySnapshot,
    LogChanges,
    LogSettings,
    ModelGauges,
    ModelIndex,
    ModelMetadata,
    ModelStatistics,
    Operation,
    OperationCall,
    RegionKind,
    ServerMetadata,
    SystemRegion,
    TraceChanges,
    TraceSettings,
)
from tritonpy_protos.model_config_pb2 import ModelConfig

RpcCall = Callable[..., Any]
"""Sends a query with keyword arguments and returns its value; raises its `TritonError`."""


class RpcEngine(Engine):
    """An engine whose methods are RPC calls, except `infer`, which the subclass implements."""

    def __init__(self, call: RpcCall) -> None:
        self._call = call

    def server_metadata(self) -> ServerMetadata:
        return msgspec.convert(self._engine("server_metadata"), ServerMetadata)

    def is_live(self) -> bool:
        return bool(self._engine("is_live"))

    def is_ready(self) -> bool:
        return bool(self._engine("is_ready"))

    def is_model_ready(self, name: str, version: int = -1) -> bool:
        return bool(self._engine("is_model_ready", name=name, version=version))

    def model_metadata(self, name: str, version: int = -1) -> ModelMetadata:
        return msgspec.convert(self._engine("model_metadata", name=name, version=version), ModelMetadata)

    def request_parameters(self, name: str, version: int = -1) -> frozenset[str] | None:
        found = self._engine("request_parameters", name=name, version=version)
        return None if found is None else frozenset(found)

    def model_config(self, name: str, version: int = -1) -> ModelConfig:
        return ModelConfig.FromString(base64.b64decode(self._engine("model_config", name=name, version=version)))

    def statistics(self, name: str = "", version: int = -1) -> Sequence[ModelStatistics]:
        return msgspec.convert(self._engine("statistics", name=name, version=version), list[ModelStatistics])

    def gauges(self) -> Mapping[tuple[str, str], ModelGauges]:
        return dict(msgspec.convert(self._engine("gauges"), list[tuple[tuple[str, str], ModelGauges]]))

    def custom_metrics(self) -> Sequence[FamilySnapshot]:
        return msgspec.convert(self._engine("custom_metrics"), list[FamilySnapshot])

    def repository_index(self, ready: bool = False) -> Sequence[ModelIndex]:
        return msgspec.convert(self._engine("repository_index", ready=ready), list[ModelIndex])

    def load_model(
        self,
        name: str,
        config: str | None = None,
        files: Mapping[str, bytes] | None = None,
        versions: Sequence[int] = (),
    ) -> None:
        content = {path: base64.b64encode(data).decode() for path, data in (files or {}).items()}
        self._engine("load_model", name=name, config=config, files=content, versions=list(versions))

    def unload_model(self, name: str, unload_dependents: bool = False, versions: Sequence[int] = ()) -> None:
        self._engine("unload_model", name=name, unload_dependents=unload_dependents, versions=list(versions))

    def regions(self, kind: RegionKind, name: str = "") -> Sequence[SystemRegion | CudaRegion]:
        found = self._engine("regions", kind=kind, name=name)
        return msgspec.convert(found, list[SystemRegion] if kind == RegionKind.SYSTEM else list[CudaRegion])

    def check_region(self, kind: RegionKind, name: str) -> None:
        self._engine("check_region", kind=kind, name=name)

    def register_system_region(self, name: str, key: str, offset: int, byte_size: int) -> None:
        self._engine("register_system_region", name=name, key=key, offset=offset, byte_size=byte_size)

    def register_cuda_region(self, name: str, handle: bytes, device_id: int, byte_size: int) -> None:
        text = base64.b64encode(handle).decode()
        self._engine("register_cuda_region", name=name, handle=text, device_id=device_id, byte_size=byte_size)

    def unregister_regions(self, kind: RegionKind, name: str = "") -> None:
        self._engine("unregister_regions", kind=kind, name=name)

    def trace_settings(self, model_name: str = "") -> TraceSettings:
        return msgspec.convert(self._engine("trace_settings", model_name=model_name), TraceSettings)

    def change_trace_settings(self, changes: TraceChanges, model_name: str = "") -> None:
        self._engine("change_trace_settings", changes=msgspec.to_builtins(changes), model_name=model_name)

    def log_settings(self) -> LogSettings:
        return msgspec.convert(self._engine("log_settings"), LogSettings)

    def change_log_settings(self, changes: LogChanges) -> None:
        self._engine("change_log_settings", changes=msgspec.to_builtins(changes))

    def operations(self) -> Sequence[Operation]:
        return msgspec.convert(self._engine("operations"), list[Operation])

    def operate(self, name: str, call: OperationCall) -> Any:
        return self._engine("operate", name=name, call=msgspec.to_builtins(call))

    def _engine(self, method: str, **arguments: Any) -> Any:
        return self._call("engine", method=method, arguments=arguments)
