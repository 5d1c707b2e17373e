"""One NVIDIA GPU: a stream of the instance's own, and host memory that the GPU reads and writes by itself."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import torch

from tritonpy import DTYPES, Batch, InvalidArgument, Tensor, Unavailable, gather
from tritonpy_backend_torch.serving.device_inputs import gathered_on
from tritonpy_backend_torch.serving.dtypes import TORCH_DTYPES
from tritonpy_backend_torch.serving.lanes import Lane
from tritonpy_backend_torch.serving.tensors import borrowed

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig

_limits = threading.Lock()


class CudaLane(Lane):
    """Copies inputs to the device and outputs back, on a stream that no other instance waits for."""

    def __init__(self, device: Any, pinned: bool, urgent: bool) -> None:
        torch.cuda.set_device(device)  # for the calling thread, the instance's
        self.device = device
        self._pinned = pinned
        self._stream = torch.cuda.Stream(device, priority=-1 if urgent else 0)

    def current(self) -> AbstractContextManager[Any]:
        stream: AbstractContextManager[Any] = torch.cuda.stream(self._stream)
        return stream

    def gathered(self, batch: Batch) -> list[Tensor]:
        """Return the inputs; those that the batch has on the host lie in pinned memory, those of a device stay on it."""
        return gathered_on(self.device, batch, self._host_gathered)

    def placed(self, tensor: Tensor) -> Any:
        value = borrowed(tensor)
        return value.to(self.device, non_blocking=True) if isinstance(value, torch.Tensor) else value

    def settle(self) -> None:
        self._stream.synchronize()

    def fetched(self, values: Sequence[Any]) -> list[Any]:
        found = [self._fetched(value) for value in values]
        self._stream.synchronize()
        return found

    def clean(self) -> None:
        torch.cuda.empty_cache()

    def _host_gathered(self, batch: Batch) -> list[Tensor]:
        return gather(batch, pinned_array if self._pinned else None)

    def _fetched(self, value: Any) -> Any:
        if value.device.type == "cpu" or not self._pinned:
            return value.cpu()
        return torch.empty(value.shape, dtype=value.dtype, pin_memory=True).copy_(value, non_blocking=True)


def pinned_array(_name: str, datatype: str, shape: tuple[int, ...]) -> Any:
    """Return an array in pinned memory of PyTorch's own pool, for `gather` to write to."""
    memory = torch.empty(shape, dtype=TORCH_DTYPES[datatype], pin_memory=True)
    return memory.view(torch.uint16).numpy().view(DTYPES["BF16"]) if datatype == "BF16" else memory.numpy()


def cuda_device(number: int, model: str) -> Any:
    """Return the GPU `number`; raises Unavailable where PyTorch cannot use it."""
    if not torch.cuda.is_available() or number >= torch.cuda.device_count():
        raise Unavailable(
            f"model '{model}' needs GPU {number}, this PyTorch ({torch.__version__}) can use {torch.cuda.device_count()}: "
            "install a build of PyTorch for your CUDA, or put the model on KIND_CPU"
        )
    return torch.device("cuda", number)


def limit_memory(limit: int, device: Any, own_process: bool) -> None:
    """Let this process allocate `limit` bytes of the device and no more; raises InvalidArgument where that would bound other models too."""
    if device is None or device.type != "cuda":
        raise InvalidArgument(
            "parameter 'memory_limit_bytes' bounds the memory of a GPU; PyTorch bounds none of the host"
        )
    if not own_process:
        raise InvalidArgument(
            "parameter 'memory_limit_bytes' needs the parameter 'isolation' to be \"process\": PyTorch bounds the memory of a process, not of a model"
        )
    with _limits:
        total = torch.cuda.get_device_properties(device).total_memory
        torch.cuda.set_per_process_memory_fraction(min(limit / total, 1.0), device)


def is_urgent(config: ModelConfig) -> bool:
    """Say whether the model's kernels go before those of others."""
    optimization = config.optimization
    return bool(optimization.priority == optimization.PRIORITY_MAX)
