from __future__ import annotations

import numpy as np
import pytest

from tritonpy import Batch, InferRequest, Tensor, Unavailable
from tritonpy.config import DeviceSettings
from tritonpy.execution import gather
from tritonpy_device_cuda.memory_pools import MemoryPools
from tritonpy_protos.model_config_pb2 import ModelOptimizationPolicy

from .fake_cuda import FakeCuda


@pytest.fixture
def cuda():
    return FakeCuda()


def memory(cuda, pinned=1 << 20, on_gpu=1 << 16, **pinning):
    settings = DeviceSettings(
        pinned_memory_pool_byte_size=pinned, cuda_memory_pool_byte_size={"0": on_gpu}
    )
    policy = ModelOptimizationPolicy()
    for name, enable in pinning.items():
        getattr(policy, name).enable = enable
    return MemoryPools(settings, [0], lambda: cuda).of_model(policy)


def held(model):
    return {(kind, device): size for kind, device, size in model.held()}


def test_without_gpus_no_memory_is_available():
    model = MemoryPools(DeviceSettings()).of_model(ModelOptimizationPolicy())
    assert (model.pinned_input, model.pinned_output, list(model.held()), model.has_pools) == (
        None,
        None,
        [],
        False,
    )
    with pytest.raises(Unavailable, match="on GPU 0: no such GPU"):
        model.on_device(0, 8)


def test_inputs_of_a_batch_are_gathered_in_pinned_memory(cuda):
    model = memory(cuda)
    rows = [np.full((1, 3), number, np.float32) for number in (1, 2)]
    requests = [InferRequest("m", {"IN": Tensor.from_numpy("IN", row)}, None) for row in rows]
    (tensor,) = gather(Batch(requests), model.pinned_input)
    assert tensor.data.tolist() == [[1.0] * 3, [2.0] * 3]
    assert held(model) == {("CPU_PINNED", 0): 24, ("GPU", 0): 0}
    del tensor
    assert held(model)["CPU_PINNED", 0] == 0


def test_memory_is_ordinary_while_the_pool_is_full(cuda):
    model = memory(cuda, pinned=256)
    first = model.pinned_input("IN", "INT64", (32,))
    second = model.pinned_output("OUT", "INT64", (2, 16))
    assert (second.shape, second.dtype, held(model)["CPU_PINNED", 0]) == ((2, 16), np.int64, 256)
    del first


@pytest.mark.parametrize(
    ("pinning", "inputs", "outputs"),
    [
        ({}, True, True),
        ({"input_pinned_memory": False}, False, True),
        ({"output_pinned_memory": False}, True, False),
        ({"input_pinned_memory": True, "output_pinned_memory": False}, True, False),
    ],
)
def test_the_model_configuration_decides_about_pinned_memory(cuda, pinning, inputs, outputs):
    model = memory(cuda, **pinning)
    assert (model.pinned_input is not None, model.pinned_output is not None) == (inputs, outputs)


@pytest.mark.parametrize("limit", [0, 1 << 30])
def test_without_pinned_memory_outputs_are_not_copied_for_it(limit):
    cuda = FakeCuda(limit)
    model = memory(cuda, pinned=0 if limit else 1 << 20)
    if not limit:
        assert model.pinned_input("IN", "FP32", (4,)).shape == (4,)  # the first allocation fails
    assert (model.pinned_input, model.pinned_output) == (None, None)


def test_gpu_memory_comes_from_the_pool_or_is_allocated_separately(cuda):
    model = memory(cuda, on_gpu=512)
    blocks = [model.on_device(0, size) for size in (300, 4000)]
    assert (cuda.on_gpu(0), held(model)["GPU", 0]) == ([512, 4000], 4300)
    del blocks
    assert (cuda.on_gpu(0), held(model)["GPU", 0]) == ([512], 0)
    cuda.limit = 600
    with pytest.raises(
        Unavailable, match=r"^Failed to allocate CUDA memory on GPU 0 with byte size 4000: "
    ):
        model.on_device(0, 4000)


def test_each_model_is_counted_separately(cuda):
    settings = DeviceSettings()
    pools = MemoryPools(settings, [0], lambda: cuda)
    one, other = (pools.of_model(ModelOptimizationPolicy()) for _ in range(2))
    kept = one.pinned_input("IN", "UINT8", (10,))
    assert [held(model)["CPU_PINNED", 0] for model in (one, other)] == [10, 0]
    assert kept.shape == (10,)
