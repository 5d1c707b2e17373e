"""Fixtures for a simulated machine with models."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format

from tritonpy import ModelMemory
from tritonpy.config import DeviceSettings
from tritonpy_backend_trt import cuda, plugin_libraries
from tritonpy_backend_trt.backend import TensorRtBackend
from tritonpy_device_cuda.cuda_calls import CudaCalls
from tritonpy_device_cuda.memory_pools import MemoryPools
from tritonpy_protos.model_config_pb2 import ModelConfig
from tritonpy_testing import BackendHarness

from .simulated.cuda_runtime import Runnable, cuda_runtime
from .simulated.gpus import Event, Machine, Stream
from .simulated.tensorrt import tensorrt


class Simulation:
    """A machine with two GPUs and the full TensorRT; `trt` is its module.

    Models are in `folder`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.machine = Machine()
        self.trt = tensorrt(self.machine)
        self.runtime = cuda_runtime(self.machine)
        settings = DeviceSettings(
            pinned_memory_pool_byte_size=1 << 16,
            cuda_memory_pool_byte_size={"0": 1 << 12, "1": 1 << 12},
        )
        self._pools = MemoryPools(settings, range(self.machine.gpus), CudaCalls)

    def memory(self, config: Any) -> ModelMemory:
        return self._pools.of_model(config.optimization)

    def load(
        self, plan: bytes, text: str = "", folder: Path | None = None, **options: Any
    ) -> BackendHarness:
        """Return the harness of a model with this plan; entering it loads the model."""
        folder = folder or self.folder
        (folder / "1").mkdir(parents=True, exist_ok=True)
        (folder / "1" / "model.plan").write_bytes(plan)
        config = text_format.Parse(
            f'name: "m" backend: "tensorrt" platform: "tensorrt_plan" {text}', ModelConfig()
        )
        return BackendHarness(
            TensorRtBackend,
            config,
            folder,
            options,
            gpus=range(self.machine.gpus),
            memory=self.memory(config),
        )

    def close(self) -> None:
        """Check that models have released all resources."""
        self._pools.close()
        gc.collect()
        assert not self.machine.crashes
        left = {f"GPU {gpu}": self.machine.held(gpu) for gpu in range(self.machine.gpus)}
        left |= {kind.__name__: self.machine.count(kind) for kind in (Stream, Event, Runnable)}
        assert not any(left.values()), left


@pytest.fixture
def simulation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Simulation]:
    made = Simulation(tmp_path)
    monkeypatch.setitem(sys.modules, "tensorrt", made.trt)
    monkeypatch.setitem(sys.modules, "tensorrt_lean", None)
    monkeypatch.setitem(sys.modules, "cuda.bindings.runtime", made.runtime)
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", ModuleType("cuda.bindings.driver"))
    monkeypatch.setattr(plugin_libraries, "_loaded_libraries", set())
    cuda.load_cuda.cache_clear()
    yield made
    made.close()
    cuda.load_cuda.cache_clear()


def output(response: Any, name: str) -> np.ndarray:
    assert response.error is None, response.error
    return next(tensor for tensor in response.outputs if tensor.name == name).numpy()
