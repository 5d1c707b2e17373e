"""An engine without a server, for tests of frontends, clients and remote engines."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Self

from google.protobuf import json_format

from tritonpy import (
    Cancelled,
    DecoupledRefused,
    Engine,
    InferRequest,
    InferResponse,
    Internal,
    InvalidArgument,
    NotFound,
    Tensor,
    TritonError,
)
from tritonpy.auth import Verb
from tritonpy.config import DATATYPE_OF_NUMBER
from tritonpy.frontend import (
    CudaRegion,
    FileOptions,
    FileSink,
    LogChanges,
    LogSettings,
    ModelMetadata,
    Operation,
    OperationCall,
    RegionKind,
    Regions,
    ServerMetadata,
    SystemRegion,
    TensorMetadata,
    hold_regions,
)
from tritonpy.metrics import (
    CustomMetrics,
    Duration,
    FamilySnapshot,
    InferStatistics,
    ModelGauges,
    ModelStatistics,
)
from tritonpy.repository import ModelIndex
from tritonpy.tracing import TraceChanges, TraceSettings, Tracing
from tritonpy_protos.model_config_pb2 import ModelConfig
from tritonpy_testing.recording_sink import WAIT_S
from tritonpy_testing.toy_model import ToyModel, toy_models

TOY_OPERATION = Operation(
    "repeat_thing", "PUT", "toys/{thing}", "Return the body of the call.", Verb.MANAGE
)


class ToyEngine(Engine):
    """An engine that serves functions, each as version 1 of a model (default: `toy_models()`).

    It responds from its own thread, in the order of the requests. As a context manager it ends the
    thread. `hold()` delays every response, so that a test can act while requests are in flight.
    Tests create metrics in `metrics` through a `ModelMetrics`.
    """

    def __init__(self, models: Iterable[ToyModel] | None = None) -> None:
        self._models = {
            model.config.name: model for model in (toy_models() if models is None else models)
        }
        self.metrics = CustomMetrics()
        self._tracing = Tracing(
            FileSink(FileOptions()), TraceSettings([], 1000, -1, 0, "", "triton", {})
        )
        self._logging = LogSettings()
        self._unloaded: set[str] = set()
        self._regions = Regions(allowed=True)
        self._worker = ThreadPoolExecutor(1, "toy-engine")
        self._changed = threading.Condition()
        self._on_hold = False
        self._in_flight: list[InferRequest] = []
        self._counts = {name: _no_statistics(name) for name in self._models}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._worker.shutdown()

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Send no responses inside the `with` block, except for cancellations."""
        self._on_hold = True
        try:
            yield
        finally:
            with self._changed:
                self._on_hold = False
                self._changed.notify_all()

    def wait_for_requests(self, count: int, timeout_s: float = WAIT_S) -> list[InferRequest]:
        """Return the requests in flight once there are at least `count`.

        Raises AssertionError after `timeout_s`.
        """
        with self._changed:
            assert self._changed.wait_for(lambda: len(self._in_flight) >= count, timeout_s), (
                f"{len(self._in_flight)} of {count} requests arrived"
            )
            return list(self._in_flight)

    def infer(self, request: InferRequest) -> None:
        model = self._ready_model(request.model_name, request.model_version)
        if model.config.model_transaction_policy.decoupled and not request.accepts_decoupled:
            raise DecoupledRefused(
                f"model '{request.model_name}' is decoupled, but the caller accepts only one "
                "response"
            )
        expected = {item.name for item in model.config.input}
        if set(request.inputs) != expected:
            raise InvalidArgument(
                f"expected the inputs {sorted(expected)}, got {sorted(request.inputs)}"
            )
        if request.uses_regions:
            hold_regions(self._regions, request)
        request.owner = self
        with self._changed:
            self._in_flight.append(request)
            self._changed.notify_all()
        self._worker.submit(self._run, request, model)

    def respond(self, requests: Sequence[InferRequest], responses: Sequence[InferResponse]) -> None:
        """Send responses to the sinks. Responses after the final one are dropped."""
        for request, given in zip(requests, responses, strict=True):
            response = given if request.regions is None else request.regions.finish(request, given)
            with self._changed:
                if request.finished:
                    continue
                request.finished = response.final
                if response.final:
                    self._in_flight.remove(request)
                    self._count(request, response)
                    self._changed.notify_all()
            request.sink.put(request, response)

    def reschedule(self, request: InferRequest) -> None:
        """Do nothing: a function never reschedules requests."""

    def cancel(self, request: InferRequest) -> None:
        """Respond with Cancelled, unless the request has its final response."""
        request.respond(InferResponse.failed(request, Cancelled("the request was cancelled")))

    def _run(self, request: InferRequest, model: ToyModel) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._on_hold or request.finished)
        try:
            responses = self._responses(request, model)
        except TritonError as error:
            responses = [InferResponse.failed(request, error)]
        except Exception as error:
            responses = [InferResponse.failed(request, Internal(str(error)))]
        for response in responses:
            request.respond(response)

    def _responses(self, request: InferRequest, model: ToyModel) -> list[InferResponse]:
        outputs = model.function({name: tensor.numpy() for name, tensor in request.inputs.items()})
        requested = list(request.outputs or [item.name for item in model.config.output])
        name = model.config.name
        responses = [
            InferResponse(
                [Tensor.from_numpy(key, arrays[key]) for key in requested],
                name,
                1,
                request.id,
                final=False,
            )
            for arrays in outputs
        ]
        if model.config.model_transaction_policy.decoupled:
            return [*responses, InferResponse((), name, 1, request.id, empty=True)]
        responses[-1].final = True
        return responses

    def _count(self, request: InferRequest, response: InferResponse) -> None:
        counts = self._counts[request.model_name]
        if response.error is not None:
            counts.inference_stats.fail.count += 1
            return
        counts.inference_count += 1
        counts.execution_count += 1
        counts.inference_stats.success.count += 1

    def server_metadata(self) -> ServerMetadata:
        return ServerMetadata("toy", "0", ["model_repository"])

    def is_live(self) -> bool:
        return True

    def is_ready(self) -> bool:
        return not self._unloaded

    def is_model_ready(self, name: str, version: int = -1) -> bool:
        return self._model(name).config.name not in self._unloaded and version in {-1, 1}

    def model_metadata(self, name: str, version: int = -1) -> ModelMetadata:
        config = self._ready_model(name, version).config
        inputs, outputs = (
            [
                TensorMetadata(item.name, DATATYPE_OF_NUMBER[item.data_type].name, list(item.dims))
                for item in items
            ]
            for items in (config.input, config.output)
        )
        return ModelMetadata(name, ["1"], config.platform, inputs, outputs)

    def request_parameters(self, name: str, version: int = -1) -> frozenset[str] | None:
        return frozenset(("scale", "offset")) if name == "identity" else None

    def model_folder(self, name: str, version: int = -1) -> str:
        return f"/models/{self._ready_model(name, version).config.name}/1"

    def model_config(self, name: str, version: int = -1) -> ModelConfig:
        return self._ready_model(name, version).config

    def statistics(self, name: str = "", version: int = -1) -> Sequence[ModelStatistics]:
        if not name:
            return [self._counts[each] for each in self._models if each not in self._unloaded]
        self._ready_model(name, version)
        return [self._counts[name]]

    def gauges(self) -> Mapping[tuple[str, str], ModelGauges]:
        failed = {name: self._counts[name].inference_stats.fail.count for name in self._models}
        return {
            (name, "1"): ModelGauges({"BACKEND": failed[name]}, 0, 0.0, 0, {})
            for name in self._models
        }

    def custom_metrics(self) -> Sequence[FamilySnapshot]:
        return self.metrics.snapshot()

    def repository_index(self, ready: bool = False) -> Sequence[ModelIndex]:
        return [
            ModelIndex(name, "1", "UNAVAILABLE",
            "unloaded") if name in self._unloaded else ModelIndex(name, "1", "READY")
            for name in self._models if not (ready and name in self._unloaded)
        ]  # fmt: skip

    def load_model(
        self,
        name: str,
        config: str | None = None,
        files: Mapping[str, bytes] | None = None,
        versions: Sequence[int] = (),
    ) -> None:
        if name not in self._models:
            raise Internal(f"failed to load '{name}', failed to poll from model repository")
        model = self._models[name]
        if versions and set(versions) != {1}:
            raise InvalidArgument(
                f"load failed for model '{name}': a toy model has only version 1, "
                f"not {list(versions)}\n"
            )
        if config is not None:
            replaced = ModelConfig()
            json_format.Parse(config, replaced)
            self._models[name] = ToyModel(replaced, model.function)
        self._unloaded.discard(name)

    def unload_model(
        self, name: str, unload_dependents: bool = False, versions: Sequence[int] = ()
    ) -> None:
        model = self._model(name)
        if not versions or 1 in versions:
            self._unloaded.add(model.config.name)

    def regions(self, kind: RegionKind, name: str = "") -> Sequence[SystemRegion | CudaRegion]:
        return self._regions.status(kind, name)

    def check_region(self, kind: RegionKind, name: str) -> None:
        self._regions.check(kind, name)

    def register_system_region(self, name: str, key: str, offset: int, byte_size: int) -> None:
        self._regions.register_system(SystemRegion(name, key, offset, byte_size))

    def register_cuda_region(
        self, name: str, handle: bytes, device_id: int, byte_size: int
    ) -> None:
        self._regions.register_cuda(CudaRegion(name, device_id, byte_size), handle)

    def unregister_regions(self, kind: RegionKind, name: str = "") -> None:
        self._regions.unregister(kind, name)

    def trace_settings(self, model_name: str = "") -> TraceSettings:
        self._require_traceable(model_name)
        return self._tracing.settings(model_name)

    def change_trace_settings(self, changes: TraceChanges, model_name: str = "") -> None:
        self._require_traceable(model_name)
        self._tracing.change(changes, model_name)

    def operations(self) -> Sequence[Operation]:
        return [TOY_OPERATION]

    def operate(self, name: str, call: OperationCall) -> Any:
        if name != TOY_OPERATION.name:
            return super().operate(name, call)
        if call.body is None:
            raise InvalidArgument("the operation needs a body")
        return {
            "thing": call.parameters["thing"],
            "body": call.body,
            "revision": (call.revision or 0) + 1,
        }

    def _require_traceable(self, name: str) -> None:
        if name and (name not in self._models or name in self._unloaded):
            raise InvalidArgument(f"Request for unknown model : {name}")

    def log_settings(self) -> LogSettings:
        return self._logging

    def change_log_settings(self, changes: LogChanges) -> None:
        self._logging = changes.applied_to(self._logging)

    def _model(self, name: str) -> ToyModel:
        if name not in self._models:
            raise InvalidArgument(f"Request for unknown model: '{name}' is not found")
        return self._models[name]

    def _ready_model(self, name: str, version: int) -> ToyModel:
        model = self._model(name)
        if name in self._unloaded:
            raise NotFound(f"Request for unknown model: '{name}' has no available versions")
        if version not in {-1, 1}:
            raise NotFound(f"Request for unknown model: '{name}' version {version} is not found")
        return model


def _no_statistics(name: str) -> ModelStatistics:
    times = InferStatistics(*(Duration() for _ in range(8)))
    return ModelStatistics(name, "1", 0, 0, 0, times, {}, [], [])
