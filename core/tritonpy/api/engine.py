"""The interface that frontends, ensembles and models that call models talk to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from tritonpy.api.operation import Operation, OperationCall
from tritonpy.api.trace_settings import TraceChanges, TraceSettings
from tritonpy.config.qualified import qualified
from tritonpy.custom_metrics.snapshot import FamilySnapshot, HistogramSnapshot
from tritonpy.errors import NotFound
from tritonpy.logs import LogChanges, LogSettings
from tritonpy.types import CudaRegion, InferRequest, RegionKind, SystemRegion

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig


class ServerMetadata(msgspec.Struct, frozen=True):
    """Who the server is; the fields are those of the protocol."""

    name: str
    version: str
    extensions: list[str]


class TensorMetadata(msgspec.Struct, frozen=True):
    """One input or output; -1 in `shape` is a variable dimension, the batch dimension included."""

    name: str
    datatype: str
    shape: list[int]


class ModelMetadata(msgspec.Struct, frozen=True):
    """What clients know of a model; `versions` are the ready ones, as text."""

    name: str
    versions: list[str]
    platform: str
    inputs: list[TensorMetadata]
    outputs: list[TensorMetadata]


class Duration(msgspec.Struct):
    """How often something happened, and how long it took altogether in ns."""

    count: int = 0
    ns: int = 0


class InferStatistics(msgspec.Struct):
    """Times of the requests of one model version; `success` includes cache hits."""

    success: Duration
    fail: Duration
    queue: Duration
    compute_input: Duration
    compute_infer: Duration
    compute_output: Duration
    cache_hit: Duration
    cache_miss: Duration


class ResponseStatistics(msgspec.Struct):
    """Times of the n-th responses of a decoupled model."""

    compute_infer: Duration
    compute_output: Duration
    success: Duration
    fail: Duration
    empty_response: Duration
    cancel: Duration


class BatchStatistics(msgspec.Struct):
    """Executions of one batch size."""

    batch_size: int
    compute_input: Duration
    compute_infer: Duration
    compute_output: Duration


class MemoryUsage(msgspec.Struct):
    """Memory that a model holds: `type` is that of a device, CPU, CPU_PINNED or GPU, `id` counts devices of that type from 0."""

    type: str
    id: int
    byte_size: int


class ModelStatistics(msgspec.Struct, omit_defaults=True):
    """Everything counted for one model version; the fields up to `memory_usage` are those of the protocol.

    `namespace` is the repository of the model, where several may hold models of the same name.
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
        """The name that no other model of the server has."""
        return qualified(self.namespace, self.name)


class SummarySnapshot(msgspec.Struct, frozen=True):
    """What a summary saw: how many observations, their sum, and recent (quantile, value) pairs; None is a quantile of nothing."""

    count: int
    sum: int
    quantiles: list[tuple[float, float | None]]


class GpuShare(msgspec.Struct):
    """The part of a model version's counts that its instances on one GPU have; `gpu` counts the visible GPUs from 0, None is the part of no GPU."""

    gpu: int | None
    statistics: ModelStatistics
    failures: dict[str, int]


class ModelGauges(msgspec.Struct):
    """What the metrics need beside the statistics: failures by reason, requests waiting, seconds to load, metric tags.

    `first_response` is in ms; `summaries` are in µs, by part of a request's time: request, queue, compute_input, compute_infer, compute_output,
    and with a response cache cache_hit and cache_miss. Both are there where the server was told to measure them. `shares` part the statistics of a
    model with instances on GPUs; `cached`: the model uses the server's response cache.
    """

    failures: dict[str, int]
    pending: int
    load_seconds: float
    late_answers: int
    tags: dict[str, str]
    first_response: HistogramSnapshot | None = None
    summaries: dict[str, SummarySnapshot] = {}
    shares: list[GpuShare] = []
    cached: bool = False


class ModelIndex(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of the repository index; a model that was never loaded has a name only."""

    name: str
    version: str = ""
    state: str = ""
    reason: str = ""


class Engine(ABC):
    """The server without its protocols. Takes and returns plain values, so that it can live in another process.

    Every method may be called from any thread. `infer` never blocks; `load_model` takes as long as the model does, and `is_model_ready` asks the model,
    which may take seconds: never call these two on an event loop. The others answer from memory (over a socket when the engine is remote): call
    them off the event loop where that matters.
    A model version is an int, -1 for the newest ready one. Errors are TritonErrors in Triton's words.
    """

    @abstractmethod
    def infer(self, request: InferRequest) -> None:
        """Hand over a request. On return the model owns it and answers to its sink; if this raises, the caller still owns it.

        From within the server's event loop the model begins at the end of the loop's turn: do not block the loop on the answer.
        A request that uses regions holds them until its final answer.
        """

    def infer_alike(self, requests: Sequence[InferRequest], refused: Callable[[InferRequest, Exception], None]) -> None:
        """Hand over requests of clients that came together; `refused(request, error)` gets those for which `infer` would have raised.

        They differ in their ids, times and the values of their inputs alone, none of which is BYTES; they have the same sink, and none is
        traced, belongs to a sequence, uses regions or has parameters. What is asked of each may then be asked once for all.
        """
        for request in requests:
            try:
                self.infer(request)
            except Exception as error:
                refused(request, error)

    @abstractmethod
    def server_metadata(self) -> ServerMetadata:
        """Return name, version and protocol extensions."""

    @abstractmethod
    def is_live(self) -> bool:
        """Say whether the server runs at all."""

    @abstractmethod
    def is_ready(self) -> bool:
        """Say whether the server and, with strict readiness, every known model serves; asks no model itself, so that a probe never waits for one."""

    @abstractmethod
    def is_model_ready(self, name: str, version: int = -1) -> bool:
        """Ask the model whether it serves; raises for a name that was never seen.

        Takes up to 5 s, where the model has a check of its own; one that says nothing by then is not ready.
        """

    @abstractmethod
    def model_metadata(self, name: str, version: int = -1) -> ModelMetadata:
        """Return inputs, outputs and versions."""

    def request_parameters(self, name: str, version: int = -1) -> frozenset[str] | None:
        """Return the names of the request parameters that the model reads; None if it may read any, or it is not loaded."""
        return None

    @abstractmethod
    def model_config(self, name: str, version: int = -1) -> ModelConfig:
        """Return the completed configuration; do not change it."""

    @abstractmethod
    def statistics(self, name: str = "", version: int = -1) -> Sequence[ModelStatistics]:
        """Return the statistics of one version, of all versions of a model, or with no name of every model."""

    @abstractmethod
    def gauges(self) -> Mapping[tuple[str, str], ModelGauges]:
        """Return by (qualified name of the model, version) what only the metrics show."""

    @abstractmethod
    def custom_metrics(self) -> Sequence[FamilySnapshot]:
        """Return the metrics that the models made themselves."""

    @abstractmethod
    def repository_index(self, ready: bool = False) -> Sequence[ModelIndex]:
        """List every model of the repositories, or only the ready ones."""

    @abstractmethod
    def load_model(
        self,
        name: str,
        config: str | None = None,
        files: Mapping[str, bytes] | None = None,
        versions: Sequence[int] = (),
    ) -> None:
        """Load or reload; returns when it serves. `config` (JSON) and `files` ("file:1/model.onnx" -> content) replace those on disk.

        With `versions` those are loaded beside what serves, whatever the version policy says, until the next load without.
        """

    @abstractmethod
    def unload_model(self, name: str, unload_dependents: bool = False, versions: Sequence[int] = ()) -> None:
        """Start to unload the model, or only `versions` of it; returns at once, requests in flight finish."""

    @abstractmethod
    def regions(self, kind: RegionKind, name: str = "") -> Sequence[SystemRegion | CudaRegion]:
        """Return one registered region of shared memory, or with no name all of that kind in the order of their names."""

    @abstractmethod
    def check_region(self, kind: RegionKind, name: str) -> None:
        """Raise what registering `name` is refused with whatever memory it is for: not allowed, no name."""

    @abstractmethod
    def register_system_region(self, name: str, key: str, offset: int, byte_size: int) -> None:
        """Let requests use `byte_size` bytes from `offset` of the POSIX shared-memory object `key`."""

    @abstractmethod
    def register_cuda_region(self, name: str, handle: bytes, device_id: int, byte_size: int) -> None:
        """Let requests use `byte_size` bytes of the GPU memory with the IPC handle `handle`; may take as long as CUDA does to start."""

    @abstractmethod
    def unregister_regions(self, kind: RegionKind, name: str = "") -> None:
        """Forget a region, or with no name all of that kind; requests in flight that use it keep it until they are answered."""

    @abstractmethod
    def trace_settings(self, model_name: str = "") -> TraceSettings:
        """Return what applies to a model, or with no name to those without settings of their own; asks the model whether it serves: not on an event loop."""

    @abstractmethod
    def change_trace_settings(self, changes: TraceChanges, model_name: str = "") -> None:
        """Follow new trace settings from the next request on; asks the model whether it serves: not on an event loop."""

    @abstractmethod
    def log_settings(self) -> LogSettings:
        """Return what this process logs and how."""

    @abstractmethod
    def change_log_settings(self, changes: LogChanges) -> None:
        """Log otherwise from the next line on, in this process and in those of models."""

    def operations(self) -> Sequence[Operation]:
        """Return the management operations that the server offers beside the protocol."""
        return ()

    def operate(self, name: str, call: OperationCall) -> Any:
        """Answer a call of the operation `name` with plain JSON; it may take its time: not on an event loop. Raises NotFound for an unknown one."""
        raise NotFound(f"there is no operation '{name}'")
