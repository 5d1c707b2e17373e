"""The server's pools, as one model uses them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from tritonpy.config.server.device_settings import DeviceSettings
from tritonpy.device_memory.block import DeviceBlock, HostBlock
from tritonpy.device_memory.pool import Pool
from tritonpy.errors import Unavailable
from tritonpy.gather import Allocate, Array
from tritonpy.types import DTYPES

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelOptimizationPolicy

NO_POOLS: Mapping[int, Pool[DeviceBlock]] = {}


class ModelMemory:
    """Memory for the inputs and outputs of a model on GPUs; what it lends goes back when it is forgotten. From any thread.

    `settings` are the server's, `wishes` the model's: pinned is what they say nothing of. Without GPUs there is nothing to be had, and everything says so.
    """

    def __init__(
        self,
        settings: DeviceSettings | None = None,
        pinned: Pool[HostBlock] | None = None,
        devices: Mapping[int, Pool[DeviceBlock]] = NO_POOLS,
        wishes: ModelOptimizationPolicy | None = None,
    ) -> None:
        self.settings = settings or DeviceSettings()
        self._pinned = pinned
        self._devices = devices
        self._pins_inputs = wishes is None or _wanted(wishes, "input_pinned_memory")
        self._pins_outputs = wishes is None or _wanted(wishes, "output_pinned_memory")

    @property
    def pinned_input(self) -> Allocate | None:
        """What `gather(batch, out=…)` takes to write inputs where a GPU reads them fastest; None where nothing can be pinned, or the model does not want it.

        `pinned_input(name, datatype, shape)` gives an array of pinned memory, of ordinary memory while the pool has no room; not for BYTES.
        """
        return self._array if self._pins_inputs and self._can_pin() else None

    @property
    def pinned_output(self) -> Allocate | None:
        """The same for what a GPU writes."""
        return self._array if self._pins_outputs and self._can_pin() else None

    def on_device(self, gpu: int, byte_size: int) -> DeviceBlock:
        """Return memory of a GPU: of its pool, or where that has no room, allocated for itself. Raises Unavailable."""
        pool = self._devices.get(gpu)
        if pool is None:
            raise Unavailable(
                f"Failed to allocate CUDA memory with byte size {byte_size} on GPU {gpu}: there is no such GPU"
            )
        return pool.take(byte_size, self) or pool.take_apart(byte_size, self)

    def held(self) -> Iterator[tuple[str, int, int]]:
        """Yield what the model holds: kind of memory, device, bytes."""
        if self._pinned is not None:
            yield "CPU_PINNED", 0, self._pinned.held(self)
        for gpu, pool in self._devices.items():
            yield "GPU", gpu, pool.held(self)

    @property
    def lends(self) -> bool:
        """Whether there are any pools."""
        return bool(self._devices)

    def _can_pin(self) -> bool:
        return self._pinned is not None and self._pinned.usable

    def _array(self, _name: str, datatype: str, shape: tuple[int, ...]) -> Array:
        dtype = DTYPES[datatype]
        block = None if self._pinned is None else self._pinned.take(prod(shape) * dtype.itemsize, self)
        return np.empty(shape, dtype) if block is None else np.asarray(block).view(dtype).reshape(shape)


def _wanted(wishes: ModelOptimizationPolicy, field: str) -> bool:
    return not wishes.HasField(field) or bool(getattr(wishes, field).enable)
