"""A fake of CUDA without a GPU; its allocations are ordinary memory of this process."""

from __future__ import annotations

from collections import Counter

import numpy as np

from tritonpy_device_cuda.cuda_calls import CudaError


class FakeCuda:
    """A fake of `CudaCalls`.

    `pinned` and `on_gpu` return the sizes of the live allocations; `limit` bounds their sum.
    """

    def __init__(self, limit=1 << 30):
        self.limit = limit
        self.allocations = Counter()  # numbers of all allocations so far, by kind
        self._live = {}

    @property
    def pinned(self):
        return [array.nbytes for kind, array in self._live.values() if kind == "pinned"]

    def on_gpu(self, device_id):
        return [array.nbytes for kind, array in self._live.values() if kind == device_id]

    def pin(self, size):
        return self._allocate("pinned", size)

    def allocate(self, size, device_id):
        return self._allocate(device_id, size)

    def unpin(self, address):
        assert self._live.pop(address)[0] == "pinned"

    def free(self, address, device_id):
        assert self._live.pop(address)[0] == device_id

    def _allocate(self, kind, size):
        if (
            sum(array.nbytes for each, array in self._live.values() if each == kind) + size
            > self.limit
        ):
            raise CudaError("cudaMalloc: cudaErrorMemoryAllocation")
        array = np.zeros(size, np.uint8)
        self.allocations[kind] += 1
        self._live[array.ctypes.data] = kind, array
        return array.ctypes.data
