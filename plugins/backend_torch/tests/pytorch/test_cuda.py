"""Tests with a simulated GPU, and with a real one."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from tritonpy import Batch, InvalidArgument, Tensor, Unavailable
from tritonpy_backend_torch.pytorch import cuda
from tritonpy_backend_torch.pytorch.cuda import (
    CudaTransfer,
    cuda_device,
    is_urgent,
    limit_memory,
    pinned_array,
)
from tritonpy_testing import model_config

from ..models import LINEAR, Linear

GPU = torch.device("cuda", 1)
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")


class FakeStream:
    def __init__(self, device, priority):
        self.device, self.priority, self.waits = device, priority, 0

    def synchronize(self):
        self.waits += 1


class Away(torch.Tensor):
    """A tensor that claims to be on a GPU."""

    device = GPU
    __torch_function__ = torch._C._disabled_torch_function_impl


@pytest.fixture
def gpus(monkeypatch):
    """Two GPUs that record calls; their memory is host memory."""
    calls = SimpleNamespace(device=None, fractions=[], emptied=0, pinned=[])
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: setattr(calls, "device", device))
    monkeypatch.setattr(torch.cuda, "Stream", FakeStream)
    monkeypatch.setattr(
        torch.cuda, "empty_cache", lambda: setattr(calls, "emptied", calls.emptied + 1)
    )
    monkeypatch.setattr(
        torch.cuda, "get_device_properties", lambda device: SimpleNamespace(total_memory=1000)
    )
    monkeypatch.setattr(
        torch.cuda,
        "set_per_process_memory_fraction",
        lambda fraction, device: calls.fractions.append((fraction, device)),
    )
    empty = torch.empty

    def noted(*arguments, pin_memory=False, **named):
        calls.pinned.append(pin_memory)
        return empty(*arguments, **named)

    monkeypatch.setattr(cuda.torch, "empty", noted)
    return calls


def test_each_instance_has_a_stream_of_its_own_on_its_device(gpus):
    one, other = (
        CudaTransfer(GPU, pinned=True, urgent=False),
        CudaTransfer(GPU, pinned=True, urgent=True),
    )
    assert gpus.device == GPU
    assert (one._stream.device, one._stream.priority, other._stream.priority) == (GPU, 0, -1)
    assert one._stream is not other._stream
    one.synchronize()
    assert (one._stream.waits, other._stream.waits) == (1, 0)
    one.release_cache()
    assert gpus.emptied == 1


@pytest.mark.parametrize("pinned", [True, False])
def test_host_inputs_use_pinned_memory_unless_disabled(gpus, models, load, pinned):
    models.script(Linear())
    with load(LINEAR) as harness:
        batch = Batch([harness.request({"x": np.ones((1, 3), np.float32)})], model=harness.model)
        gpus.pinned.clear()
        [tensor] = CudaTransfer(GPU, pinned=pinned, urgent=False).gather_inputs(batch)
    assert tensor.numpy().tolist() == [[1, 1, 1]]
    assert gpus.pinned == ([True] if pinned else [])


def test_outputs_come_back_through_pinned_memory(gpus):
    transfer = CudaTransfer(GPU, pinned=True, urgent=False)
    [found] = transfer.to_host([torch.ones(2).as_subclass(Away)])
    assert (found.device.type, found.tolist(), gpus.pinned, transfer._stream.waits) == (
        "cpu",
        [1, 1],
        [True],
        1,
    )
    host = torch.ones(2)
    assert transfer.to_host([host])[0] is host


@pytest.mark.parametrize("datatype", ["FP32", "BF16", "BOOL"])
def test_pinned_memory_has_the_type_and_shape_of_the_input(gpus, datatype):
    array = pinned_array("x", datatype, (2, 3))
    assert Tensor.from_numpy("x", array).datatype == datatype
    assert array.shape == (2, 3)


def test_a_missing_device_gives_instructions(gpus):
    assert cuda_device(1, "m") == GPU
    with pytest.raises(
        Unavailable,
        match=r"model 'm' needs GPU 2, but this PyTorch \(.*\) can use 2 GPUs: install a build of PyTorch",
    ):
        cuda_device(2, "m")


def test_memory_is_limited_only_for_an_own_process(gpus):
    limit_memory(250, GPU, own_process=True)
    limit_memory(5000, GPU, own_process=True)
    assert gpus.fractions == [(0.25, GPU), (1.0, GPU)]
    with pytest.raises(InvalidArgument, match="needs the parameter 'isolation' to be \"process\""):
        limit_memory(250, GPU, own_process=False)
    for device in (None, torch.device("cpu")):
        with pytest.raises(
            InvalidArgument, match="limits GPU memory; PyTorch cannot limit host memory"
        ):
            limit_memory(250, device, own_process=True)


@pytest.mark.parametrize(
    ("text", "urgent"),
    [
        ("", False),
        ("optimization { priority: PRIORITY_MAX }", True),
        ("optimization { priority: PRIORITY_MIN }", False),
    ],
)
def test_the_priority_of_the_configuration_is_that_of_the_stream(text, urgent):
    assert is_urgent(model_config(LINEAR + text)) == urgent


@needs_gpu
def test_a_model_runs_on_a_gpu_and_frees_its_memory(models, load):
    models.script(Linear())
    with load(LINEAR) as harness:
        from tritonpy import InstanceContext
        from tritonpy_backend_torch.backend import TorchBackend

        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated(0)
        instance = TorchBackend(harness.model, InstanceContext("m_1", "GPU", 0, 1))
        assert [usage.type for usage in instance.memory_usage()] == ["GPU"]
        batch = Batch(
            [harness.request({"x": np.array([[1, 2, 3]], np.float32)})], model=harness.model
        )
        assert instance._instance.run(batch)["OUTPUT__0"].numpy().tolist() == [[6, 12]]
        instance.close()
        assert torch.cuda.memory_allocated(0) == before
