"""A device without hardware."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from tritonpy.api.device import DeviceUnavailable, NoDevice
from tritonpy_config.server.sections import DeviceSettings
from tritonpy_types import CudaRegion, RegionMemory

TOTAL = 80 << 30


class ToyDevice(NoDevice):
    """Two GPUs with the used fraction of their memory in `used`; a missing one cannot be read.

    A region has 16 bytes in `memory`; `opened` lists the names of the regions that were opened.
    `by_process` is the memory of every process.
    """

    def __init__(
        self,
        settings: DeviceSettings | None = None,
        ids: Sequence[int] | None = None,
        used: Mapping[int, float] = {},
    ) -> None:
        super().__init__(settings, ids)
        self.used = used
        self.content = np.arange(16, dtype=np.uint8)
        self.opened: list[str] = []
        self.by_process: Mapping[int, int] = {}

    def visible(self) -> Sequence[int]:
        return (0, 1)

    def memory(self, gpu: int) -> tuple[int, int]:
        if gpu not in self.used:
            raise DeviceUnavailable("nvidia-ml-py is not there")
        return int(self.used[gpu] * TOTAL), TOTAL

    def process_memory(self, pid: int) -> Mapping[int, int]:
        return self.by_process

    def open_region(self, region: CudaRegion, handle: bytes) -> RegionMemory:
        self.opened.append(region.name)
        return ToyRegion(self.content)


class ToyRegion:
    """Host memory in place of that of a GPU."""

    def __init__(self, content: npt.NDArray[np.uint8]) -> None:
        self._content = content

    def read(self, offset: int, size: int) -> memoryview:
        return memoryview(self._content[offset : offset + size].copy()).toreadonly()

    def write(self, offset: int, array: npt.NDArray[np.uint8]) -> None:
        self._content[offset : offset + array.nbytes] = array.reshape(-1).view(np.uint8)
