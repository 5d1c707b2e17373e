"""Deserialises the engines of one model version, and shares them among its instances."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tritonpy import Internal, InvalidArgument, MemoryUsage, ModelContext
from tritonpy_backend_trt.allocator import Ledger, allocator_of
from tritonpy_backend_trt.bindings import bindings
from tritonpy_backend_trt.cuda import Cuda, cuda
from tritonpy_backend_trt.libraries import load_libraries
from tritonpy_backend_trt.logger import listening, reason
from tritonpy_backend_trt.options import TensorRtOptions
from tritonpy_backend_trt.plan import advice, version_of
from tritonpy_backend_trt.plan_file import beginning, mapped, plan_path
from tritonpy_backend_trt.runtime import create_runtime
from tritonpy_backend_trt.settings import Settings, settings_of
from tritonpy_backend_trt.signature import Signature, signature_of
from tritonpy_backend_trt.streaming import stream_weights

_deserialising = threading.Lock()  # TensorRT does not create engines from several threads at once
NO_DLA = -1


@dataclass(slots=True)
class OpenEngine:
    """An `ICudaEngine` and what it says of itself; `launching` is held by who puts work on its GPU, where only one may."""

    engine: Any
    signature: Signature
    ledger: Ledger
    launching: threading.Lock = field(default_factory=threading.Lock)

    def context(self, strategy: Any, profile: int, stream: int) -> Any:
        """Return a new `IExecutionContext`, under the profile of that index when the stream has nothing to do; raises Internal."""
        with listening() as errors:
            context = self.engine.create_execution_context(strategy)
        if context is None:
            raise Internal(f"unable to create TensorRT context: {reason(errors)}{self.ledger.complaint()}")
        if profile:
            context.set_optimization_profile_async(profile, stream)
        return context


class Engines:
    """The engines of one model version: one per GPU and DLA core, deserialised when first asked for.

    Execution contexts of one engine run at the same time, so that its weights are in memory once. From any thread. Raises Unavailable where TensorRT or
    cuda-python is not installed, InvalidArgument or Unsupported for settings that cannot be.
    """

    def __init__(self, model: ModelContext) -> None:
        assert isinstance(model.options, TensorRtOptions), "the core decodes this backend's options: this is a bug"  # noqa: S101
        self.settings: Settings = settings_of(model.config, model.parameters)
        self.trt: Any = bindings(model.options.runtime)
        self.cuda: Cuda = cuda()
        self._options = model.options
        self._model = model
        self._lock = threading.Lock()
        self._open: dict[tuple[int, int], OpenEngine] = {}
        self._ledgers: dict[tuple[int, int], Ledger] = {}

    def acquire(self, gpu: int, dla_core: int = NO_DLA, instance: str = "") -> OpenEngine:
        """Return the engine for a GPU; raises a TritonError that says why the model cannot be opened there. `instance` is named in errors."""
        with self._lock, self.cuda.on(gpu):
            key = gpu, dla_core
            if key not in self._open:
                path = plan_path(self._model, self.cuda.capability(gpu), instance or self._model.name)
                ledger = self._ledgers[key] = Ledger(self.settings.memory_limit)
                self._open[key] = self._opened(path, dla_core, ledger)
            return self._open[key]

    def memory(self) -> Iterator[MemoryUsage]:
        """Yield what TensorRT holds on each GPU: weights, and what executions need beside inputs and outputs."""
        for (gpu, _), ledger in list(self._ledgers.items()):
            yield MemoryUsage("GPU", gpu, ledger.held)

    def close(self) -> None:
        """Forget the engines; they are freed when the last instance has gone."""
        with self._lock:
            self._open.clear()

    def _opened(self, path: Path, dla_core: int, ledger: Ledger) -> OpenEngine:
        first = beginning(path)
        load_libraries(self.trt, self._options.plugins)
        runtime = self._runtime(dla_core)
        runtime.gpu_allocator = allocator_of(self.trt, self.cuda, ledger)
        with _deserialising, listening() as errors, mapped(path) as plan:
            engine = runtime.deserialize_cuda_engine(plan)
        if engine is None:
            hint = advice(version_of(first), self.trt.__version__, self._options.version_compatible)
            raise Internal(f"unable to create TensorRT engine: {reason(errors)}{hint}{ledger.complaint()}")
        stream_weights(engine, self.settings.streaming_budget, self._model)
        return OpenEngine(engine, signature_of(engine), ledger)

    def _runtime(self, dla_core: int) -> Any:
        runtime = create_runtime(self.trt)
        if self._options.version_compatible:
            runtime.engine_host_code_allowed = True
        if dla_core != NO_DLA:
            if dla_core >= runtime.num_DLA_cores:
                raise InvalidArgument(
                    f"unable to create TensorRT runtime with DLA Core ID: {dla_core}, available number of DLA cores: "
                    f"{runtime.num_DLA_cores}"
                )
            runtime.DLA_core = dla_core
        return runtime
