"""Tensor transfer for an NVIDIA GPU: a stream per instance and pinned host memory."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import torch

from tritonpy import DTYPES, Batch, InvalidArgument, Tensor, Unavailable
from tritonpy.execution import gather
from tritonpy_backend_torch.pytorch.device_inputs import gather_on_device
from tritonpy_backend_torch.pytorch.dtypes import TORCH_DTYPES
from tritonpy_backend_torch.pytorch.tensors import to_torch
from tritonpy_backend_torch.pytorch.transfer import DeviceTransfer

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig

_limits = threading.Lock()


class CudaTransfer(DeviceTransfer):
    """Copies inputs and outputs on a stream that no other instance waits for."""

    def __init__(self, device: Any, pinned: bool, urgent: bool) -> None:
        torch.cuda.set_device(device)  # for the calling thread, which is the instance's
        self.device = device
        self._pinned = pinned
        self._stream = torch.cuda.Stream(device, priority=-1 if urgent else 0)

    def context(self) -> AbstractContextManager[Any]:
        stream: AbstractContextManager[Any] = torch.cuda.stream(self._stream)
        return stream

    def gather_inputs(self, batch: Batch) -> list[Tensor]:
        """Return the inputs.

        Host inputs are in pinned memory, device inputs stay on their device.
        """
        return gather_on_device(self.device, batch, self._gather_on_host)

    def to_device(self, tensor: Tensor) -> Any:
        value = to_torch(tensor)
        return (
            value.to(self.device, non_blocking=True) if isinstance(value, torch.Tensor) else value
        )

    def synchronize(self) -> None:
        self._stream.synchronize()

    def to_host(self, values: Sequence[Any]) -> list[Any]:
        found = [self._copy_to_host(value) for value in values]
        self._stream.synchronize()
        return found

    def release_cache(self) -> None:
        torch.cuda.empty_cache()

    def _gather_on_host(self, batch: Batch) -> list[Tensor]:
        return gather(batch, pinned_array if self._pinned else None)

    def _copy_to_host(self, value: Any) -> Any:
        if value.device.type == "cpu" or not self._pinned:
            return value.cpu()
        return torch.empty(value.shape, dtype=value.dtype, pin_memory=True).copy_(
            value, non_blocking=True
        )


def pinned_array(_name: str, datatype: str, shape: tuple[int, ...]) -> Any:
    """Return an array in pinned memory from PyTorch's pool, for `gather` to write to."""
    memory = torch.empty(shape, dtype=TORCH_DTYPES[datatype], pin_memory=True)
    return (
        memory.view(torch.uint16).numpy().view(DTYPES["BF16"])
        if datatype == "BF16"
        else memory.numpy()
    )


def cuda_device(number: int, model: str) -> Any:
    """Return the GPU `number`; raise `Unavailable` if PyTorch cannot use it."""
    if not torch.cuda.is_available() or number >= torch.cuda.device_count():
        raise Unavailable(
            f"model '{model}' needs GPU {number}, but this PyTorch ({torch.__version__}) can use "
            f"{torch.cuda.device_count()} GPUs: "
            "install a build of PyTorch for your CUDA version, or run the model on KIND_CPU"
        )
    return torch.device("cuda", number)


def limit_memory(limit: int, device: Any, own_process: bool) -> None:
    """Limit this process to `limit` bytes of the device's memory.

    Raises `InvalidArgument` if the limit would apply to other models, too.
    """
    if device is None or device.type != "cuda":
        raise InvalidArgument(
            "parameter 'memory_limit_bytes' limits GPU memory; PyTorch cannot limit host memory"
        )
    if not own_process:
        raise InvalidArgument(
            "parameter 'memory_limit_bytes' needs the parameter 'isolation' to be \"process\": "
            "PyTorch limits the memory of a process, not of a model"
        )
    with _limits:
        total = torch.cuda.get_device_properties(device).total_memory
        torch.cuda.set_per_process_memory_fraction(min(limit / total, 1.0), device)


def is_urgent(config: ModelConfig) -> bool:
    """Return whether the model's kernels have priority over those of other models."""
    optimization = config.optimization
    return bool(optimization.priority == optimization.PRIORITY_MAX)
