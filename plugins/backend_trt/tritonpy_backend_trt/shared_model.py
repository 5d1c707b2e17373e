"""Engines of one model version, shared by its instances."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tritonpy import Internal, InvalidArgument, MemoryUsage, ModelContext
from tritonpy_backend_trt.allocator import AllocationTracker, create_allocator
from tritonpy_backend_trt.bindings import import_tensorrt
from tritonpy_backend_trt.cuda import Cuda, load_cuda
from tritonpy_backend_trt.logger import collect_errors, last_error
from tritonpy_backend_trt.options import TensorRtOptions
from tritonpy_backend_trt.plan_file import header, map_plan, plan_path
from tritonpy_backend_trt.plan_header import plan_version, version_hint
from tritonpy_backend_trt.plugin_libraries import load_libraries
from tritonpy_backend_trt.runtime import create_runtime
from tritonpy_backend_trt.settings import ModelSettings, model_settings
from tritonpy_backend_trt.signature import Signature, read_signature
from tritonpy_backend_trt.weight_streaming import stream_weights

_deserialize_lock = (
    threading.Lock()
)  # TensorRT cannot deserialize engines on several threads at once
NO_DLA = -1


@dataclass(slots=True)
class OpenEngine:
    """An `ICudaEngine` with its signature.

    `launch_lock` serializes the enqueueing of work on its GPU where that is required.
    """

    engine: Any
    signature: Signature
    tracker: AllocationTracker
    launch_lock: threading.Lock = field(default_factory=threading.Lock)

    def context(self, strategy: Any, profile: int, stream: int) -> Any:
        """Return a new `IExecutionContext`; raise `Internal` on failure.

        The profile with index `profile` takes effect when the stream has no work.
        """
        with collect_errors() as errors:
            context = self.engine.create_execution_context(strategy)
        if context is None:
            raise Internal(
                "unable to create TensorRT context: "
                f"{last_error(errors)}{self.tracker.limit_message()}"
            )
        if profile:
            context.set_optimization_profile_async(profile, stream)
        return context


class SharedModel:
    """Engines of one model version, deserialized on demand, one per GPU and DLA core.

    Execution contexts of one engine run concurrently, so the weights are in memory once.
    Thread-safe. The constructor raises `Unavailable` if TensorRT or cuda-python is not installed,
    `InvalidArgument` or `Unsupported` for invalid settings.
    """

    def __init__(self, model: ModelContext) -> None:
        assert isinstance(model.options, TensorRtOptions), (  # noqa: S101
            "the core decodes this backend's options: this is a bug"
        )
        self.settings: ModelSettings = model_settings(model.config, model.parameters)
        self.trt: Any = import_tensorrt(model.options.runtime)
        self.cuda: Cuda = load_cuda()
        self._options = model.options
        self._model = model
        self._lock = threading.Lock()
        self._engines: dict[tuple[int, int], OpenEngine] = {}
        self._trackers: dict[tuple[int, int], AllocationTracker] = {}

    def acquire(self, gpu: int, dla_core: int = NO_DLA, instance: str = "") -> OpenEngine:
        """Return the engine for a GPU; `instance` is the name in errors.

        Raises a `TritonError` if the model cannot be opened there.
        """
        with self._lock, self.cuda.device_context(gpu):
            key = gpu, dla_core
            if key not in self._engines:
                path = plan_path(
                    self._model, self.cuda.compute_capability(gpu), instance or self._model.name
                )
                tracker = self._trackers[key] = AllocationTracker(self.settings.memory_limit)
                self._engines[key] = self._open_engine(path, dla_core, tracker)
            return self._engines[key]

    def memory_usage(self) -> Iterator[MemoryUsage]:
        """Yield TensorRT's memory on each GPU, without inputs and outputs."""
        for (gpu, _), tracker in list(self._trackers.items()):
            yield MemoryUsage("GPU", gpu, tracker.allocated_bytes)

    def close(self) -> None:
        """Drop the references to the engines; each is freed with the last instance that uses it."""
        with self._lock:
            self._engines.clear()

    def _open_engine(self, path: Path, dla_core: int, tracker: AllocationTracker) -> OpenEngine:
        first = header(path)
        load_libraries(self.trt, self._options.plugins)
        runtime = self._runtime(dla_core)
        runtime.gpu_allocator = create_allocator(self.trt, self.cuda, tracker)
        with _deserialize_lock, collect_errors() as errors, map_plan(path) as plan:
            engine = runtime.deserialize_cuda_engine(plan)
        if engine is None:
            hint = version_hint(
                plan_version(first), self.trt.__version__, self._options.version_compatible
            )
            raise Internal(
                "unable to create TensorRT engine: "
                f"{last_error(errors)}{hint}{tracker.limit_message()}"
            )
        stream_weights(engine, self.settings.streaming_budget, self._model)
        return OpenEngine(engine, read_signature(engine), tracker)

    def _runtime(self, dla_core: int) -> Any:
        runtime = create_runtime(self.trt)
        if self._options.version_compatible:
            runtime.engine_host_code_allowed = True
        if dla_core != NO_DLA:
            if dla_core >= runtime.num_DLA_cores:
                raise InvalidArgument(
                    f"unable to create TensorRT runtime with DLA Core ID: {dla_core}, "
                    "available number of DLA cores: "
                    f"{runtime.num_DLA_cores}"
                )
            runtime.DLA_core = dla_core
        return runtime
