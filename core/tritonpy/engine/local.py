"""The engine over the models of this process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from tritonpy.api.engine import (
    Engine,
    ModelGauges,
    ModelIndex,
    ModelMetadata,
    ModelStatistics,
    ServerMetadata,
)
from tritonpy.custom_metrics import CustomMetrics, FamilySnapshot
from tritonpy.engine.lifecycle import ServerState
from tritonpy.engine.metadata import model_metadata
from tritonpy.errors import InvalidArgument, NotFound, TritonError, Unavailable
from tritonpy.model.loaded import ModelClosed
from tritonpy.repository.table import UNLOADED, ModelTable
from tritonpy.runners.call_graph import CallGraph
from tritonpy.types import InferRequest

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig

EXTENSIONS = [
    "classification",
    "model_repository",
    "model_repository(unload_dependents)",
    "schedule_policy",
    "model_configuration",
    "binary_tensor_data",
    "parameters",
    "statistics",
]


class ModelControl(Protocol):
    """What the engine needs of the repository: the operations that clients may ask for."""

    def load(self, name: str, config: str | None = None, files: Mapping[str, bytes] | None = None) -> None:
        """Load or reload."""

    def unload(self, name: str) -> None:
        """Unload."""

    def index(self, ready: bool) -> list[ModelIndex]:
        """List."""


class LocalEngine(Engine):
    """Look-ups go to the table, operations to the repository."""

    def __init__(
        self,
        table: ModelTable,
        metrics: CustomMetrics,
        graph: CallGraph,
        metadata: ServerMetadata,
        explicit: bool,
        strict_readiness: bool,
    ) -> None:
        self._table = table
        self._metrics = metrics
        self._graph = graph
        self._metadata = metadata
        self._explicit = explicit
        self._strict = strict_readiness
        self.state = ServerState.INITIALIZING
        self._control: ModelControl

    def attach(self, control: ModelControl) -> None:
        """Take the repository; done once, before the server is READY."""
        self._control = control

    def infer(self, request: InferRequest) -> None:
        if self.state is ServerState.INITIALIZING:
            raise Unavailable("Server not ready")
        if request.parent is None:
            self._hand_over(request)
            return
        self._graph.admit_child(request)
        self._graph.bind(request)
        try:
            self._hand_over(request)
        except BaseException:
            self._graph.forget(request)
            raise
        if request.parent.cancelled:
            request.cancel()

    def _hand_over(self, request: InferRequest) -> None:
        while True:
            try:
                self._table.find(request.model_name, request.model_version).infer(request)
            except ModelClosed:
                # It was replaced or unloaded between look-up and hand-over, and is not in the table any more: look again.
                continue
            except NotFound as error:
                raise self._instead(error, request) from None
            return

    def _instead(self, error: NotFound, request: InferRequest) -> TritonError:
        """An exiting server takes its models out of the table: then that is what the caller should hear."""
        if self.state is not ServerState.EXITING:
            return error
        text = "Server is stopping, scheduler for model has stopped accepting new inference requests"
        return Unavailable(text).with_request_id(request.id)

    def server_metadata(self) -> ServerMetadata:
        return self._metadata

    def is_live(self) -> bool:
        if self.state is ServerState.EXITING:
            raise Unavailable("Server exiting")
        return True

    def is_ready(self) -> bool:
        if self.state is ServerState.EXITING:
            raise Unavailable("Server exiting")
        if self.state is not ServerState.READY:
            return False
        return not self._strict or all(
            record.model.alive() if record.model is not None else record.reason == UNLOADED
            for _, _, record in self._table.records()
        )

    def is_model_ready(self, name: str, version: int = -1) -> bool:
        self._require_ready()
        try:
            return self._table.find(name, version).is_ready()
        except Unavailable:
            return False

    def model_metadata(self, name: str, version: int = -1) -> ModelMetadata:
        self._require_ready()
        model = self._table.find(name, version)
        versions = [version] if version != -1 else [model.version for model in self._table.ready(name)]
        return model_metadata(model.config, versions)

    def model_config(self, name: str, version: int = -1) -> ModelConfig:
        self._require_ready()
        return self._table.find(name, version).config

    def statistics(self, name: str = "", version: int = -1) -> Sequence[ModelStatistics]:
        self._require_ready()
        if not name:
            models = self._table.all_ready()
        else:
            models = self._table.ready(name)
            if not models:
                raise InvalidArgument(f"requested model '{name}' is not available")
            if version != -1:
                models = [model for model in models if model.version == version]
                if not models:
                    raise InvalidArgument(f"requested model version is not available for model '{name}'")
        return [model.counters.snapshot(model.name, model.version) for model in models]

    def gauges(self) -> Mapping[tuple[str, str], ModelGauges]:
        return {
            (model.name, str(model.version)): ModelGauges(
                failures=dict(model.counters.failures),
                pending=model.waiting,
                load_seconds=model.load_seconds,
                late_answers=model.counters.late_answers,
                tags=dict(model.config.metric_tags),
            )
            for model in self._table.all_ready()
        }

    def custom_metrics(self) -> Sequence[FamilySnapshot]:
        return self._metrics.snapshot()

    def repository_index(self, ready: bool = False) -> Sequence[ModelIndex]:
        self._require_ready()
        return self._control.index(ready)

    def load_model(self, name: str, config: str | None = None, files: Mapping[str, bytes] | None = None) -> None:
        self._require_explicit()
        self._control.load(name, config, files)

    def unload_model(self, name: str, unload_dependents: bool = False) -> None:
        self._require_explicit()
        self._control.unload(name)

    def _require_ready(self) -> None:
        if self.state is not ServerState.READY:
            raise Unavailable("Server not ready")

    def _require_explicit(self) -> None:
        self._require_ready()
        if not self._explicit:
            raise Unavailable("explicit model load / unload is not allowed if polling is enabled")
