"""The interface of routers, which decide where the requests of clients go."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from tritonpy.api.engine import (
    Engine,
    ModelGauges,
    ModelIndex,
    ModelMetadata,
    ModelStatistics,
    Operation,
    OperationCall,
    ServerMetadata,
)
from tritonpy.api.operation import OperationHandler
from tritonpy.api.trace_sink import TraceChanges, TraceSettings
from tritonpy_config.options import NoOptions, Options
from tritonpy_config.server.log_settings import LogChanges, LogSettings
from tritonpy_metrics.registry import FamilySnapshot
from tritonpy_types import CudaRegion, InferRequest, RegionKind, SystemRegion

if TYPE_CHECKING:
    from tritonpy_metrics import CustomMetrics
    from tritonpy_protos.model_config_pb2 import ModelConfig


class ForwardingEngine(Engine):
    """Forwards every call to `engine`; override the methods that should differ."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def infer(self, request: InferRequest) -> None:
        self.engine.infer(request)

    def server_metadata(self) -> ServerMetadata:
        return self.engine.server_metadata()

    def is_live(self) -> bool:
        return self.engine.is_live()

    def is_ready(self) -> bool:
        return self.engine.is_ready()

    def is_model_ready(self, name: str, version: int = -1) -> bool:
        return self.engine.is_model_ready(name, version)

    def model_metadata(self, name: str, version: int = -1) -> ModelMetadata:
        return self.engine.model_metadata(name, version)

    def request_parameters(self, name: str, version: int = -1) -> frozenset[str] | None:
        return self.engine.request_parameters(name, version)

    def model_folder(self, name: str, version: int = -1) -> str:
        return self.engine.model_folder(name, version)

    def model_config(self, name: str, version: int = -1) -> ModelConfig:
        return self.engine.model_config(name, version)

    def statistics(self, name: str = "", version: int = -1) -> Sequence[ModelStatistics]:
        return self.engine.statistics(name, version)

    def gauges(self) -> Mapping[tuple[str, str], ModelGauges]:
        return self.engine.gauges()

    def custom_metrics(self) -> Sequence[FamilySnapshot]:
        return self.engine.custom_metrics()

    def repository_index(self, ready: bool = False) -> Sequence[ModelIndex]:
        return self.engine.repository_index(ready)

    def load_model(
        self,
        name: str,
        config: str | None = None,
        files: Mapping[str, bytes] | None = None,
        versions: Sequence[int] = (),
    ) -> None:
        self.engine.load_model(name, config, files, versions)

    def unload_model(
        self, name: str, unload_dependents: bool = False, versions: Sequence[int] = ()
    ) -> None:
        self.engine.unload_model(name, unload_dependents, versions)

    def register_repository(self, path: str, folders: Mapping[str, str]) -> None:
        self.engine.register_repository(path, folders)

    def unregister_repository(self, path: str) -> None:
        self.engine.unregister_repository(path)

    def regions(self, kind: RegionKind, name: str = "") -> Sequence[SystemRegion | CudaRegion]:
        return self.engine.regions(kind, name)

    def check_region(self, kind: RegionKind, name: str) -> None:
        self.engine.check_region(kind, name)

    def register_system_region(self, name: str, key: str, offset: int, byte_size: int) -> None:
        self.engine.register_system_region(name, key, offset, byte_size)

    def register_cuda_region(
        self, name: str, handle: bytes, device_id: int, byte_size: int
    ) -> None:
        self.engine.register_cuda_region(name, handle, device_id, byte_size)

    def unregister_regions(self, kind: RegionKind, name: str = "") -> None:
        self.engine.unregister_regions(kind, name)

    def trace_settings(self, model_name: str = "") -> TraceSettings:
        return self.engine.trace_settings(model_name)

    def change_trace_settings(self, changes: TraceChanges, model_name: str = "") -> None:
        self.engine.change_trace_settings(changes, model_name)

    def log_settings(self) -> LogSettings:
        return self.engine.log_settings()

    def change_log_settings(self, changes: LogChanges) -> None:
        self.engine.change_log_settings(changes)

    def operations(self) -> Sequence[Operation]:
        return self.engine.operations()

    def operate(self, name: str, call: OperationCall) -> Any:
        return self.engine.operate(name, call)


@dataclass(frozen=True, slots=True)
class RouterContext:
    """The environment of a router: where it registers its metrics and writes its log."""

    metrics: CustomMetrics
    log: logging.Logger


class Router(ForwardingEngine):
    """Sits between the frontends and the engine, and forwards the calls that it does not handle.

    Only requests of clients pass through it. Calls from models to models go directly to their
    target. A router may change `model_name`, `model_version` and `sink` of a request before it
    forwards it. If the engine refuses the request, the router must restore them before it raises
    the error.
    """

    Options: ClassVar[type[Options]] = NoOptions

    def __init__(self, options: Any, engine: Engine, context: RouterContext) -> None:
        super().__init__(engine)
        self.options = options
        self.context = context

    def router_operations(self) -> Mapping[Operation, OperationHandler]:
        """Return operations that change the router at run time (optional); called once."""
        return {}

    def headers(self) -> frozenset[str]:
        """Return the lower-case names of the headers that it needs (optional); called once.

        They are kept in `InferRequest.headers`.
        """
        return frozenset()

    def close(self) -> None:
        """Release resources (optional); no request is in flight any more."""
