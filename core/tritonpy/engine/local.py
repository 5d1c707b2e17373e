"""The engine for the models of this process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from tritonpy.api.engine import (
    Engine,
    ModelGauges,
    ModelIndex,
    ModelMetadata,
    ModelStatistics,
    Operation,
    OperationCall,
    ServerMetadata,
    TensorMetadata,
)
from tritonpy.api.operation import OperationHandler
from tritonpy.api.sharing import Sharing
from tritonpy.api.trace_sink import TraceChanges, TraceSettings
from tritonpy.engine.lifecycle import ServerState
from tritonpy.engine.operations import Operations
from tritonpy.logs import change_logging, log_settings
from tritonpy.model.loaded_model import LoadedModel
from tritonpy.model.model_closed import ModelClosed
from tritonpy.repository.model_table import UNLOADED, ModelTable
from tritonpy.runners.call_graph import CallGraph
from tritonpy.shared_memory import Regions, hold_regions
from tritonpy.tracing.tracing import Tracing
from tritonpy_config.server.log_settings import LogChanges, LogSettings
from tritonpy_metrics import CustomMetrics, FamilySnapshot
from tritonpy_types import (
    DATATYPE_OF_NUMBER,
    CudaRegion,
    InferRequest,
    InferResponse,
    RegionKind,
    Sink,
    SystemRegion,
)
from tritonpy_types.errors import InvalidArgument, NotFound, TritonError, Unavailable

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig, ModelInput, ModelOutput

EXTENSIONS = [
    "classification",
    "sequence",
    "model_repository",
    "model_repository(unload_dependents)",
    "schedule_policy",
    "model_configuration",
    "system_shared_memory",
    "cuda_shared_memory",
    "binary_tensor_data",
    "parameters",
    "statistics",
    "trace",
    "logging",
]


def model_metadata(config: ModelConfig, versions: Iterable[int]) -> ModelMetadata:
    """Return name, versions, platform and tensors; shapes include the batch dimension.

    The platform is the backend's name if the configuration has no platform.
    """
    return ModelMetadata(
        name=config.name,
        versions=[str(version) for version in versions],
        platform=config.platform or config.backend,
        inputs=[_tensor(config, tensor) for tensor in config.input],
        outputs=[_tensor(config, tensor) for tensor in config.output],
    )


def _tensor(config: ModelConfig, tensor: ModelInput | ModelOutput) -> TensorMetadata:
    # Shape tensors have no batch dimension, but Triton's clients remove one from the metadata.
    batch = [-1] if config.max_batch_size > 0 else []
    return TensorMetadata(
        tensor.name, DATATYPE_OF_NUMBER[tensor.data_type].name, [*batch, *tensor.dims]
    )


def infer_on_draining_member(request: InferRequest, table: ModelTable) -> bool:
    """Send a step of an ensemble to its member version, if that version is draining.

    A draining member closes after the ensembles that were built with it. Returns whether the member
    accepted the request. Raises the member's errors.
    """
    parent = request.parent
    owner = parent.owner if parent is not None else None
    if not isinstance(owner, LoadedModel):
        return False
    member = owner.members.get((request.model_name, request.model_version))
    if member is None or member in table.ready(request.model_name):
        return False
    try:
        member.infer(request)
    except ModelClosed:
        return False
    return True


class _CountedSink(Sink):
    """A sink that reports the final response to `sharing` and forwards all responses."""

    def __init__(self, sink: Sink, sharing: Sharing) -> None:
        self.sink = sink
        self._sharing = sharing

    def put(self, request: InferRequest, response: InferResponse) -> None:
        if self._sharing.counts_responses:
            self._sharing.responded(request, response)
        if response.final:
            self._sharing.ended(request)
        self.sink.put(request, response)

    def ready(self, request: InferRequest) -> bool:
        return self.sink.ready(request)

    def when_ready(self, request: InferRequest, callback: Callable[[], None]) -> None:
        self.sink.when_ready(request, callback)

    def cancelled(self, request: InferRequest) -> None:
        self.sink.cancelled(request)


class Admission:
    """Admits client requests by the policy `sharing` and passes them to `infer`."""

    def __init__(self, sharing: Sharing, infer: Callable[[InferRequest], None]) -> None:
        self._sharing = sharing
        self._infer = infer

    def enter(self, request: InferRequest) -> None:
        """Admit `request` and send it to its model.

        Raises ResourceExhausted, and the errors of `infer`.
        """
        self._sharing.admit(request)
        sink = request.sink
        request.sink = _CountedSink(sink, self._sharing)
        try:
            self._infer(request)
        except BaseException:
            request.sink = sink
            self._sharing.ended(request)
            raise


class RepositoryControl(Protocol):
    """The repository as the engine needs it: the operations that clients may call."""

    def load(
        self,
        name: str,
        config: str | None = None,
        files: Mapping[str, bytes] | None = None,
        versions: Sequence[int] = (),
    ) -> None:
        """Load or reload a model."""

    def unload(
        self, name: str, unload_dependents: bool = False, versions: Sequence[int] = ()
    ) -> None:
        """Unload all or some versions, and on request the models that only this model uses."""

    def register(self, path: str, folders: Mapping[str, str]) -> None:
        """Add a local repository."""

    def unregister(self, path: str) -> None:
        """Remove a repository."""

    def index(self, ready: bool) -> list[ModelIndex]:
        """Return the repository index."""


class LocalEngine(Engine):
    """The engine for the models of this process.

    The model table finds models, the repository loads and unloads them.
    """

    def __init__(
        self,
        table: ModelTable,
        metrics: CustomMetrics,
        graph: CallGraph,
        metadata: ServerMetadata,
        explicit: bool,
        strict_readiness: bool,
        shared_memory: Regions,
        tracing: Tracing,
    ) -> None:
        self._table = table
        self._metrics = metrics
        self._graph = graph
        self._metadata = metadata
        self._explicit = explicit
        self._strict = strict_readiness
        self._shared_memory = shared_memory
        self._tracing = tracing
        self._operations = Operations()
        self.state = ServerState.INITIALIZING
        # the repositories cannot be read: the server stays INITIALIZING and is not live
        self.failed = False
        self._admit: Callable[[InferRequest], None] = self._infer
        self._shared = False
        self._control: RepositoryControl

    def share(self, sharing: Sharing) -> None:
        """Admit requests of clients by the policy `sharing`.

        Call it once, before the server is READY.
        """
        self._admit = Admission(sharing, self._infer).enter
        self._shared = True

    def attach(self, control: RepositoryControl) -> None:
        """Set the repository. Call it once, before the server is READY."""
        self._control = control

    def offer(self, operations: Mapping[Operation, OperationHandler]) -> None:
        """Add operations for clients. Call it before the frontends start.

        Raises PluginError if a name or path is already used.
        """
        self._operations.offer(operations)

    def close(self) -> None:
        """Write the remaining traces, and return when they are written.

        No request is in flight any more.
        """
        self._tracing.close()

    def infer(self, request: InferRequest) -> None:
        if self.state is ServerState.INITIALIZING:
            raise Unavailable("Server not ready")
        if request.uses_regions and request.regions is None:
            self._infer_from_regions(request)
            return
        if request.parent is None:
            self._admit(request)
            return
        self._graph.admit_child(request)
        self._graph.bind(request)
        if request.trace is not None:
            request.trace = request.trace.spawn()
        try:
            self._infer(request)
        except BaseException:
            self._graph.forget(request)
            if request.trace is not None:
                request.trace.end()
            raise
        if request.parent.cancelled:
            request.cancel()

    def infer_many(
        self, requests: Sequence[InferRequest], refused: Callable[[InferRequest, Exception], None]
    ) -> None:
        if (
            self._shared
            or self.state is ServerState.INITIALIZING
            or not self._infer_coalesced(requests, refused)
        ):
            super().infer_many(requests, refused)

    def _infer_coalesced(
        self, requests: Sequence[InferRequest], refused: Callable[[InferRequest, Exception], None]
    ) -> bool:
        try:
            model = self._table.find(requests[0].model_name, requests[0].model_version)
            return model.infer_coalesced(requests, refused)
        except (ModelClosed, TritonError):
            return False  # handled singly, requests get the error or find the new version

    def _infer_from_regions(self, request: InferRequest) -> None:
        try:
            model = self._table.find(request.model_name, request.model_version)
        except (NotFound, Unavailable) as error:
            if self._table.lazy_listing(request.model_name, request.model_version) is None:
                raise self._error_for(error, request) from None
        else:
            # errors of the model take precedence over errors of regions
            model.check_decoupled(request)
        held_regions = hold_regions(self._shared_memory, request)
        try:
            self.infer(request)
        except BaseException:
            held_regions.undo(request)
            raise

    def _infer(self, request: InferRequest) -> None:
        while True:
            try:
                self._table.find(request.model_name, request.model_version).infer(request)
            except ModelClosed:
                # The version was replaced or unloaded after the look-up and is no longer in the
                # table.
                continue
            except (NotFound, Unavailable) as error:
                if request.parent is not None and infer_on_draining_member(request, self._table):
                    return
                if self._table.lazy_loader is None or not self._table.lazy_loader.hold(request):
                    raise self._error_for(error, request) from None
            return

    def _error_for(self, error: TritonError, request: InferRequest) -> TritonError:
        """Return the client's error for `error`; an exiting server has an empty model table."""
        if self.state is not ServerState.EXITING or not isinstance(error, NotFound):
            return error
        text = (
            "Server is stopping, scheduler for model has stopped accepting new inference requests"
        )
        return Unavailable(text).with_request_id(request.id)

    def server_metadata(self) -> ServerMetadata:
        return self._metadata

    def is_live(self) -> bool:
        if self.state is ServerState.EXITING:
            raise Unavailable("Server exiting")
        return not self.failed

    def is_ready(self) -> bool:
        if self.state is ServerState.EXITING:
            raise Unavailable("Server exiting")
        if self.state is not ServerState.READY:
            return False
        return not self._strict or all(
            record.model.is_alive()
            if record.model is not None
            else record.reason == UNLOADED or self._table.lazy_listing(name) is not None
            for name, _, record in self._table.records()
        )

    def is_model_ready(self, name: str, version: int = -1) -> bool:
        self._require_ready()
        try:
            return self._table.find(name, version).is_ready()
        except (NotFound, Unavailable) as error:
            if self._table.lazy_listing(name, version) is not None:
                return self._table.can_load(name, version)
            if isinstance(error, NotFound):
                raise
            return False

    def model_metadata(self, name: str, version: int = -1) -> ModelMetadata:
        self._require_ready()
        config = self._table.config(name, version)
        versions = [version] if version != -1 else self._table.versions(name)
        return model_metadata(config, versions)

    def request_parameters(self, name: str, version: int = -1) -> frozenset[str] | None:
        try:
            return self._table.find(name, version).request_parameters
        except (NotFound, Unavailable):  # a lazy model, or an unknown one that `infer` refuses
            return None

    def model_folder(self, name: str, version: int = -1) -> str:
        return str(self._table.find(name, version).context.path)

    def model_config(self, name: str, version: int = -1) -> ModelConfig:
        self._require_ready()
        return self._table.config(name, version)

    def statistics(self, name: str = "", version: int = -1) -> Sequence[ModelStatistics]:
        self._require_ready()
        if not name:
            models = self._table.all_ready()
        else:
            models = self._table.ready(name)
            if not models and self._table.lazy_listing(name, version) is not None:
                return []
            if not models:
                raise InvalidArgument(f"requested model '{name}' is not available")
            if version != -1:
                models = [model for model in models if model.version == version]
                if not models:
                    raise InvalidArgument(
                        f"requested model version is not available for model '{name}'"
                    )
        return [model.statistics() for model in models]

    def gauges(self) -> Mapping[tuple[str, str], ModelGauges]:
        return {
            (model.context.qualified_name, str(model.version)): model.gauges()
            for model in self._table.all_ready()
        }

    def custom_metrics(self) -> Sequence[FamilySnapshot]:
        return self._metrics.snapshot()

    def repository_index(self, ready: bool = False) -> Sequence[ModelIndex]:
        # during startup it lists loading models
        if self.state is not ServerState.INITIALIZING or self.failed:
            self._require_ready()
        return self._control.index(ready)

    def load_model(
        self,
        name: str,
        config: str | None = None,
        files: Mapping[str, bytes] | None = None,
        versions: Sequence[int] = (),
    ) -> None:
        self._require_explicit()
        self._control.load(name, config, files, versions)

    def unload_model(
        self, name: str, unload_dependents: bool = False, versions: Sequence[int] = ()
    ) -> None:
        self._require_explicit()
        self._control.unload(name, unload_dependents, versions)

    def register_repository(self, path: str, folders: Mapping[str, str]) -> None:
        self._require_explicit()
        self._control.register(path, folders)

    def unregister_repository(self, path: str) -> None:
        self._require_explicit()
        self._control.unregister(path)

    def regions(self, kind: RegionKind, name: str = "") -> Sequence[SystemRegion | CudaRegion]:
        return self._shared_memory.status(kind, name)

    def check_region(self, kind: RegionKind, name: str) -> None:
        self._shared_memory.check(kind, name)

    def register_system_region(self, name: str, key: str, offset: int, byte_size: int) -> None:
        self._shared_memory.register_system(SystemRegion(name, key, offset, byte_size))

    def register_cuda_region(
        self, name: str, handle: bytes, device_id: int, byte_size: int
    ) -> None:
        self._shared_memory.register_cuda(CudaRegion(name, device_id, byte_size), handle)

    def unregister_regions(self, kind: RegionKind, name: str = "") -> None:
        self._shared_memory.unregister(kind, name)

    def trace_settings(self, model_name: str = "") -> TraceSettings:
        self._require_traceable(model_name)
        return self._tracing.settings(model_name)

    def change_trace_settings(self, changes: TraceChanges, model_name: str = "") -> None:
        self._require_traceable(model_name)
        self._tracing.change(changes, model_name)

    def log_settings(self) -> LogSettings:
        return log_settings()

    def change_log_settings(self, changes: LogChanges) -> None:
        change_logging(changes)

    def operations(self) -> Sequence[Operation]:
        return self._operations.listed()

    def operate(self, name: str, call: OperationCall) -> Any:
        return self._operations.call(name, call)

    def _require_traceable(self, model_name: str) -> None:
        try:
            if not model_name or self.is_model_ready(model_name):
                return
        except (InvalidArgument, NotFound):
            pass  # Triton's error for every reason
        raise InvalidArgument(f"Request for unknown model : {model_name}")

    def _require_ready(self) -> None:
        if self.state is not ServerState.READY:
            raise Unavailable("Server not ready")

    def _require_explicit(self) -> None:
        self._require_ready()
        if not self._explicit:
            raise Unavailable("explicit model load / unload is not allowed if polling is enabled")
