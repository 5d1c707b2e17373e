"""Tests of the memory pools on a real GPU."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

from tritonpy.config import DeviceSettings
from tritonpy.execution import DeviceUnavailable
from tritonpy_device_cuda.cuda_calls import open_cuda_calls
from tritonpy_device_cuda.gpus import gpu_memory, supported_gpus, visible_gpus
from tritonpy_device_cuda.memory_pools import MemoryPools
from tritonpy_protos.model_config_pb2 import ModelOptimizationPolicy

MIB = 1 << 20
HAS_CUDA = importlib.util.find_spec("cuda") is not None
HAS_NVML = importlib.util.find_spec("pynvml") is not None

pytestmark = pytest.mark.skipif(
    not (visible_gpus() and HAS_CUDA), reason="needs an NVIDIA GPU and cuda-python"
)


@pytest.fixture
def pools():
    made = MemoryPools(DeviceSettings(8 * MIB, {"0": 256 * MIB}), [0])
    yield made
    made.close()


def test_data_survives_a_round_trip_to_the_gpu(pools):
    model, calls = pools.of_model(ModelOptimizationPolicy()), open_cuda_calls()
    there = model.pinned_input("IN", "FP32", (1000,))
    there[:] = np.arange(1000)
    back = model.pinned_output("OUT", "FP32", (1000,))
    for size in (4000, 300 * MIB):  # from the pool, and allocated separately
        block = model.on_device(0, size)
        calls.to_device(block.address, there, 0)
        back[:] = 0
        calls.to_host(back.view(np.uint8), block.address, 0)
        assert back.tolist() == there.tolist()


@pytest.mark.skipif(not HAS_NVML, reason="needs nvidia-ml-py")
def test_released_memory_returns_to_the_gpu(pools):
    model = pools.of_model(ModelOptimizationPolicy())
    block = model.on_device(0, 100 * MIB)
    before, total = gpu_memory(0)
    del block
    pools.close()
    after, _ = gpu_memory(0)
    assert before - after > 200 * MIB
    assert total > before


@pytest.mark.skipif(not HAS_NVML, reason="needs nvidia-ml-py")
def test_the_driver_reports_its_gpus():
    assert supported_gpus(1.0) == visible_gpus()
    assert supported_gpus(99.0) == []
    with pytest.raises(DeviceUnavailable, match="there is no GPU"):
        gpu_memory(len(visible_gpus()))
