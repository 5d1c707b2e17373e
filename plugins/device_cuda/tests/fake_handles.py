"""A fake of CUDA memory handles, without a GPU."""

from __future__ import annotations

import numpy as np

from tritonpy_device_cuda.cuda_calls import CudaError

HANDLE = bytes(range(64))


class FakeHandles:
    """A fake of `CudaCalls` with one allocation of 16 bytes at address 1000.

    `opened` counts the open handles.
    """

    def __init__(self):
        self.memory = np.arange(16, dtype=np.uint8)
        self.opened = 0
        self.broken = False

    def open(self, handle, device_id):
        if handle != HANDLE:
            raise CudaError("cudaIpcOpenMemHandle: cudaErrorInvalidValue")
        self.opened += 1
        return 1000, 16

    def close(self, address, device_id):
        self.opened -= 1
        if self.broken:
            raise CudaError("it would not close")

    def to_host(self, array, address, device_id):
        self._check()
        array[:] = self.memory[address - 1000 :][: array.size]

    def to_device(self, address, array, device_id):
        self._check()
        self.memory[address - 1000 :][: array.nbytes] = array.reshape(-1).view(np.uint8)

    def _check(self):
        if self.broken:
            raise CudaError("cudaMemcpy: cudaErrorIllegalAddress")
