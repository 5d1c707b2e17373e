"""One model's view of the memory pools."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tritonpy import DTYPES, ModelMemory, Unavailable
from tritonpy_device_cuda.block import CudaBlock, HostBlock
from tritonpy_device_cuda.pool import Pool

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelOptimizationPolicy

Array = npt.NDArray[Any]
Allocate = Callable[[str, str, tuple[int, ...]], Array]


class CudaModelMemory(ModelMemory):
    """Memory from the pool of pinned memory, and from the pools of GPUs by their ids.

    Memory is pinned unless the model's `policy` disables it. Without GPUs no memory is available.
    """

    def __init__(
        self,
        pinned: Pool[HostBlock] | None,
        devices: Mapping[int, Pool[CudaBlock]],
        policy: ModelOptimizationPolicy,
    ) -> None:
        self._pinned = pinned
        self._devices = devices
        self._pins_inputs = _is_enabled(policy, "input_pinned_memory")
        self._pins_outputs = _is_enabled(policy, "output_pinned_memory")

    @property
    def pinned_input(self) -> Allocate | None:
        """Allocates from the pinned pool, unless the model disables it."""
        return self._array if self._pins_inputs and self._can_pin() else None

    @property
    def pinned_output(self) -> Allocate | None:
        """The same as `pinned_input`, for outputs."""
        return self._array if self._pins_outputs and self._can_pin() else None

    def on_device(self, gpu: int, byte_size: int) -> CudaBlock:
        """Return memory of a GPU from its pool, or allocated separately if the pool is full."""
        pool = self._devices.get(gpu)
        if pool is None:
            raise Unavailable(
                f"Failed to allocate CUDA memory with byte size {byte_size} on GPU {gpu}: "
                "no such GPU"
            )
        return pool.take(byte_size, self) or pool.allocate_separately(byte_size, self)

    def held(self) -> Iterator[tuple[str, int, int]]:
        """Yield the memory that the model holds: kind of memory, device, bytes."""
        if self._pinned is not None:
            yield "CPU_PINNED", 0, self._pinned.held(self)
        for gpu, pool in self._devices.items():
            yield "GPU", gpu, pool.held(self)

    @property
    def has_pools(self) -> bool:
        """Whether there are pools."""
        return bool(self._devices)

    def _can_pin(self) -> bool:
        return self._pinned is not None and self._pinned.usable

    def _array(self, _name: str, datatype: str, shape: tuple[int, ...]) -> Array:
        dtype = DTYPES[datatype]
        block = (
            None if self._pinned is None else self._pinned.take(prod(shape) * dtype.itemsize, self)
        )
        return (
            np.empty(shape, dtype)
            if block is None
            else np.asarray(block).view(dtype).reshape(shape)
        )


def _is_enabled(policy: ModelOptimizationPolicy, field: str) -> bool:
    return not policy.HasField(field) or bool(getattr(policy, field).enable)
