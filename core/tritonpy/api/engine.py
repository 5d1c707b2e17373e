"""The engine interface, which frontends, ensembles and models that call models use."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from tritonpy.api.authenticator import Verb
from tritonpy.api.trace_sink import TraceChanges, TraceSettings
from tritonpy_config.model_fit import qualified_name
from tritonpy_config.server.log_settings import LogChanges, LogSettings
from tritonpy_metrics.registry import FamilySnapshot, HistogramSnapshot
from tritonpy_types import CudaRegion, InferRequest, RegionKind, SystemRegion
from tritonpy_types.errors import NotFound, Unsupported

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig

_SEGMENT = re.compile(r"[a-z][a-z0-9_-]*|\{[a-z_]+\}")
_PARAMETER = re.compile(r"\{([a-z_]+)\}")


class ServerMetadata(msgspec.Struct, frozen=True):
    """Name, version and extensions of the server; the fields are those of the protocol."""

    name: str
    version: str
    extensions: list[str]


class TensorMetadata(msgspec.Struct, frozen=True):
    """One input or output; -1 in `shape` is a variable dimension.

    The batch dimension is included.
    """

    name: str
    datatype: str
    shape: list[int]


class ModelMetadata(msgspec.Struct, frozen=True):
    """The metadata of a model that clients see; `versions` are the ready versions, as text."""

    name: str
    versions: list[str]
    platform: str
    inputs: list[TensorMetadata]
    outputs: list[TensorMetadata]


class Duration(msgspec.Struct):
    """How often something happened, and its total duration in ns."""

    count: int = 0
    ns: int = 0


class InferStatistics(msgspec.Struct):
    """Durations of the requests of one model version; `success` includes cache hits."""

    success: Duration
    fail: Duration
    queue: Duration
    compute_input: Duration
    compute_infer: Duration
    compute_output: Duration
    cache_hit: Duration
    cache_miss: Duration


class ResponseStatistics(msgspec.Struct):
    """Durations of the n-th responses of a decoupled model."""

    compute_infer: Duration
    compute_output: Duration
    success: Duration
    fail: Duration
    empty_response: Duration
    cancel: Duration


class BatchStatistics(msgspec.Struct):
    """Durations of executions with one batch size."""

    batch_size: int
    compute_input: Duration
    compute_infer: Duration
    compute_output: Duration


class MemoryUsage(msgspec.Struct):
    """Memory that a model holds on one device.

    `type` is CPU, CPU_PINNED or GPU. `id` counts the devices of that type from 0.
    """

    type: str
    id: int
    byte_size: int


class ModelStatistics(msgspec.Struct, omit_defaults=True):
    """All statistics of one model version.

    The fields up to `memory_usage` are those of the protocol.
    `namespace` is the model's repository if several repositories may contain models of the same
    name.
    """

    name: str
    version: str
    last_inference: int  # ms since 1970
    inference_count: int
    execution_count: int
    inference_stats: InferStatistics
    response_stats: dict[str, ResponseStatistics]
    batch_stats: list[BatchStatistics]
    memory_usage: list[MemoryUsage]
    namespace: str = ""

    @property
    def qualified_name(self) -> str:
        """The name of the model, unique in the server."""
        return qualified_name(self.namespace, self.name)


class SummarySnapshot(msgspec.Struct, frozen=True):
    """The state of a summary: number and sum of the observations, and quantiles.

    `quantiles` are pairs (quantile, value) of recent observations. The value is None without
    observations.
    """

    count: int
    sum: int
    quantiles: list[tuple[float, float | None]]


class GpuShare(msgspec.Struct):
    """The share of a model version's statistics that belongs to its instances on one GPU.

    `gpu` counts the visible GPUs from 0. None is the share of instances without a GPU.
    """

    gpu: int | None
    statistics: ModelStatistics
    failures: dict[str, int]


class ModelGauges(msgspec.Struct):
    """Values of one model version that only the metrics show.

    - `failures`: the number of failures by reason; `pending`: the number of waiting requests.
    - `load_seconds`: the duration of the load in seconds; `tags`: the metric tags.
    - `first_response`: a histogram in ms.
    - `summaries`: in µs, by part of a request's time: request, queue, compute_input, compute_infer,
      compute_output, and with a response cache cache_hit and cache_miss.
    - `shares`: the statistics of a model with instances on GPUs, by GPU.
    - `cached`: the model uses the server's response cache.

    `first_response` and `summaries` exist only if the server is configured to measure them.
    """

    failures: dict[str, int]
    pending: int
    load_seconds: float
    late_responses: int
    tags: dict[str, str]
    first_response: HistogramSnapshot | None = None
    summaries: dict[str, SummarySnapshot] = {}
    shares: list[GpuShare] = []
    cached: bool = False


class ModelIndex(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of the repository index; only `name` is set for a model that was never loaded."""

    name: str
    version: str = ""
    state: str = ""
    reason: str = ""


class Operation(msgspec.Struct, frozen=True):
    """The description of an operation: plain data, so that it can be sent to another process.

    `path` is below /v2/ and may contain parameters: `traffic/routes/{route}`. `verb` is the right
    that a caller needs on the server. `summary` is one sentence for the interface description.
    Raises ValueError for an invalid path.
    """

    name: str
    method: Literal["GET", "PUT", "POST", "DELETE"]
    path: str
    summary: str
    verb: Verb = Verb.ADMIN

    def __post_init__(self) -> None:
        if not all(
            _SEGMENT.fullmatch(segment) for segment in self.path.split("/")
        ) or self.path.startswith("{"):
            raise ValueError(
                f"'{self.path}' is no path of an operation: words in lower case and {{parameters}}"
            )

    @property
    def parameters(self) -> list[str]:
        """The names of the path's parameters."""
        return _PARAMETER.findall(self.path)


class OperationCall(msgspec.Struct, frozen=True):
    """One call: the path's parameters, the body as plain JSON or None, and the known revision.

    `revision` comes from the If-Match header and is None without it. If the result is an object
    with the member `revision`, that becomes its ETag.
    """

    parameters: Mapping[str, str] = {}
    body: Any = None
    revision: int | None = None


class Engine(ABC):
    """The server without its protocols.

    It takes and returns plain values, so that it can run in another process. Any thread may call
    any method. `infer` never blocks. `load_model` takes as long as the load, and `is_model_ready`
    may wait seconds for the model: never call these two on an event loop. The others respond from
    memory, or over a socket if the engine is remote; call them off the event loop where that
    matters.

    A model version is an int; -1 selects the newest ready version. Errors are TritonErrors with
    Triton's texts.
    """

    @abstractmethod
    def infer(self, request: InferRequest) -> None:
        """Start an inference.

        When it returns, the model owns the request and responds to its sink. If it raises, the
        caller still owns the request. For calls from the server's event loop the model starts at
        the end of the current event-loop iteration: do not block the loop while you wait for the
        response. A request that uses regions holds them until its final response.
        """

    def infer_many(
        self, requests: Sequence[InferRequest], refused: Callable[[InferRequest, Exception], None]
    ) -> None:
        """Start inferences for requests with identical headers that arrived together.

        `refused(request, error)` is called for each request for which `infer` would have raised.
        The requests differ only in ids, times and input values. They have no BYTES inputs and share
        one sink. None is traced, belongs to a sequence, uses regions or has parameters. An
        implementation can therefore check all of them at once.
        """
        for request in requests:
            try:
                self.infer(request)
            except Exception as error:
                refused(request, error)

    @abstractmethod
    def server_metadata(self) -> ServerMetadata:
        """Return the server's name, version and protocol extensions."""

    @abstractmethod
    def is_live(self) -> bool:
        """Return whether the server runs."""

    @abstractmethod
    def is_ready(self) -> bool:
        """Return whether the server is ready; with strict readiness every known model must be, too.

        It never calls a model, so that a probe never waits for one.
        """

    @abstractmethod
    def is_model_ready(self, name: str, version: int = -1) -> bool:
        """Return whether the model is ready; raises NotFound for an unknown name.

        Takes up to 5 s if the model has a readiness check of its own. A model whose check takes
        longer is not ready.
        """

    @abstractmethod
    def model_metadata(self, name: str, version: int = -1) -> ModelMetadata:
        """Return the inputs, outputs and versions of a model."""

    def request_parameters(self, name: str, version: int = -1) -> frozenset[str] | None:
        """Return the names of the request parameters that the model reads.

        None if it may read any, or if it is not loaded.
        """
        return None

    def model_folder(self, name: str, version: int = -1) -> str:
        """Return the folder of a loaded version on the server's machine, "" if it is not in files.

        Frontends read files of the model there, such as its tokenizer and its chat template.
        """
        return ""

    @abstractmethod
    def model_config(self, name: str, version: int = -1) -> ModelConfig:
        """Return the completed configuration; do not change it."""

    @abstractmethod
    def statistics(self, name: str = "", version: int = -1) -> Sequence[ModelStatistics]:
        """Return the statistics of one version or of all versions of a model.

        If `name` is empty, return those of every model.
        """

    @abstractmethod
    def gauges(self) -> Mapping[tuple[str, str], ModelGauges]:
        """Return the values that only the metrics show, by qualified model name and version."""

    @abstractmethod
    def custom_metrics(self) -> Sequence[FamilySnapshot]:
        """Return the metrics that the models created."""

    @abstractmethod
    def repository_index(self, ready: bool = False) -> Sequence[ModelIndex]:
        """Return every model of the repositories, or only the ready ones."""

    @abstractmethod
    def load_model(
        self,
        name: str,
        config: str | None = None,
        files: Mapping[str, bytes] | None = None,
        versions: Sequence[int] = (),
    ) -> None:
        """Load or reload a model; returns when it serves.

        `config` (JSON) and `files` ("file:1/model.onnx" -> content) replace those of the
        repository. `versions` are loaded in addition to the serving ones, regardless of the version
        policy, until the next load without `versions`.
        """

    @abstractmethod
    def unload_model(
        self, name: str, unload_dependents: bool = False, versions: Sequence[int] = ()
    ) -> None:
        """Start to unload a model, or only `versions` of it.

        It returns immediately. Requests in flight finish.
        """

    def register_repository(self, path: str, folders: Mapping[str, str]) -> None:
        """Add a repository on the server's machine, whose models `load_model` then finds.

        `folders` maps names of models to their folders, for models with another name than their
        folder. Raises AlreadyExists if the path or one of these names is registered.
        """
        raise Unsupported("this engine has no model repositories")

    def unregister_repository(self, path: str) -> None:
        """Remove a repository. Loaded models keep serving: unload them before."""
        raise Unsupported("this engine has no model repositories")

    @abstractmethod
    def regions(self, kind: RegionKind, name: str = "") -> Sequence[SystemRegion | CudaRegion]:
        """Return one registered shared-memory region, or all of that kind, sorted by name."""

    @abstractmethod
    def check_region(self, kind: RegionKind, name: str) -> None:
        """Raise if no region can be registered as `name`: shared memory is off, or no name."""

    @abstractmethod
    def register_system_region(self, name: str, key: str, offset: int, byte_size: int) -> None:
        """Register `byte_size` bytes from `offset` of the POSIX shared-memory object `key`."""

    @abstractmethod
    def register_cuda_region(
        self, name: str, handle: bytes, device_id: int, byte_size: int
    ) -> None:
        """Register `byte_size` bytes of the GPU memory with the IPC handle `handle`.

        The first call may take as long as the start of CUDA.
        """

    @abstractmethod
    def unregister_regions(self, kind: RegionKind, name: str = "") -> None:
        """Unregister a region, or all regions of that kind if `name` is empty.

        Requests in flight keep the regions that they use until their final response.
        """

    @abstractmethod
    def trace_settings(self, model_name: str = "") -> TraceSettings:
        """Return the trace settings of a model, or those of models without own settings.

        It checks whether the model is ready: do not call it on an event loop.
        """

    @abstractmethod
    def change_trace_settings(self, changes: TraceChanges, model_name: str = "") -> None:
        """Apply new trace settings from the next request on.

        It checks whether the model is ready: do not call it on an event loop.
        """

    @abstractmethod
    def log_settings(self) -> LogSettings:
        """Return the log settings of this process."""

    @abstractmethod
    def change_log_settings(self, changes: LogChanges) -> None:
        """Apply new log settings from the next line on, in this process and in those of models."""

    def operations(self) -> Sequence[Operation]:
        """Return the management operations that the server offers in addition to the protocol."""
        return ()

    def operate(self, name: str, call: OperationCall) -> Any:
        """Call the operation `name` and return its result as plain JSON.

        It may take long: do not call it on an event loop. Raises NotFound for an unknown operation.
        """
        raise NotFound(f"unknown operation '{name}'")
