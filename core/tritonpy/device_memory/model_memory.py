"""One model's view of the server's memory pools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from tritonpy.batching.gather import Allocate, Array
from tritonpy.config.server.sections import DeviceSettings
from tritonpy.device_memory.block import DeviceBlock, HostBlock
from tritonpy.device_memory.pool import Pool
from tritonpy.errors import Unavailable
from tritonpy.types import DTYPES

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelOptimizationPolicy

NO_POOLS: Mapping[int, Pool[DeviceBlock]] = {}


class ModelMemory:
    """Memory for the inputs and outputs of a model on GPUs; any thread may call any method.

    A block returns to its pool when it is garbage-collected. `settings` are the server's, `policy`
    is the model's; memory is pinned unless the policy disables it. Without GPUs no memory is
    available.
    """

    def __init__(
        self,
        settings: DeviceSettings | None = None,
        pinned: Pool[HostBlock] | None = None,
        devices: Mapping[int, Pool[DeviceBlock]] = NO_POOLS,
        policy: ModelOptimizationPolicy | None = None,
    ) -> None:
        self.settings = settings or DeviceSettings()
        self._pinned = pinned
        self._devices = devices
        self._pins_inputs = policy is None or _is_enabled(policy, "input_pinned_memory")
        self._pins_outputs = policy is None or _is_enabled(policy, "output_pinned_memory")

    @property
    def pinned_input(self) -> Allocate | None:
        """The `out` argument of `gather` for pinned inputs, which a GPU copies fastest.

        None if nothing can be pinned or the model disables it. `pinned_input(name, datatype,
        shape)` returns an array in pinned memory, or in ordinary memory while the pool is full; not
        for BYTES.
        """
        return self._array if self._pins_inputs and self._can_pin() else None

    @property
    def pinned_output(self) -> Allocate | None:
        """The same as `pinned_input`, for outputs that a GPU writes."""
        return self._array if self._pins_outputs and self._can_pin() else None

    def on_device(self, gpu: int, byte_size: int) -> DeviceBlock:
        """Return memory of a GPU from its pool, or allocated separately if the pool is full.

        Raises Unavailable.
        """
        pool = self._devices.get(gpu)
        if pool is None:
            raise Unavailable(f"Failed to allocate CUDA memory with byte size {byte_size} on GPU {gpu}: no such GPU")
        return pool.take(byte_size, self) or pool.allocate_separately(byte_size, self)

    def held(self) -> Iterator[tuple[str, int, int]]:
        """Yield the memory that the model holds: kind of memory, device, bytes."""
        if self._pinned is not None:
            yield "CPU_PINNED", 0, self._pinned.held(self)
        for gpu, pool in self._devices.items():
            yield "GPU", gpu, pool.held(self)

    @property
    def has_pools(self) -> bool:
        """Whether the server has pools."""
        return bool(self._devices)

    def _can_pin(self) -> bool:
        return self._pinned is not None and self._pinned.usable

    def _array(self, _name: str, datatype: str, shape: tuple[int, ...]) -> Array:
        dtype = DTYPES[datatype]
        block = None if self._pinned is None else self._pinned.take(prod(shape) * dtype.itemsize, self)
        return np.empty(shape, dtype) if block is None else np.asarray(block).view(dtype).reshape(shape)


def _is_enabled(policy: ModelOptimizationPolicy, field: str) -> bool:
    return not policy.HasField(field) or bool(getattr(policy, field).enable)
