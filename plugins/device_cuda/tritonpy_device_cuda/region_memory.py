"""Shared-memory regions of clients in GPU memory."""

from __future__ import annotations

import logging
import weakref
from typing import Any

import numpy as np
import numpy.typing as npt

from tritonpy import Internal, InvalidArgument
from tritonpy.frontend import CudaRegion
from tritonpy_device_cuda.cuda_calls import CudaCalls, CudaError, open_cuda_calls

log = logging.getLogger("tritonpy.shared_memory")


def open_cuda(region: CudaRegion, handle: bytes) -> CudaMemory:
    """Open the memory of `handle`. Raises InvalidArgument if that fails, and logs the reason.

    As in Triton, clients do not see the reason.
    """
    try:
        return CudaMemory(region, handle, open_cuda_calls())
    except CudaError as error:
        log.warning("failed to open CUDA IPC handle: %s", error)
        raise InvalidArgument("failed to register shared memory region: invalid args") from None


class CudaMemory:
    """Memory that another process allocated on a GPU, opened by its IPC handle.

    Inputs and outputs are copied once, between the GPU and the host.
    """

    def __init__(self, region: CudaRegion, handle: bytes, calls: CudaCalls) -> None:
        """Open the memory.

        Raises CudaError for a wrong handle, InvalidArgument if it is too small.
        """
        self._region = region
        self._calls = calls
        self._address, size = calls.open(handle, region.device_id)
        weakref.finalize(self, _close, calls, self._address, region.device_id).atexit = False
        if region.byte_size > size:
            raise InvalidArgument(
                f"failed to register shared memory region '{region.name}': invalid args"
            )

    def read(self, offset: int, size: int) -> memoryview:
        """Return a copy on the host. Raises Internal if CUDA fails."""
        array = np.empty(size, np.uint8)
        try:
            self._calls.to_host(array, self._address + offset, self._region.device_id)
        except CudaError as error:
            raise self._failure(error) from error
        return memoryview(array.data).toreadonly()

    def write(self, offset: int, array: npt.NDArray[Any]) -> None:
        """Copy `array` to the GPU. Raises Internal if CUDA fails."""
        try:
            self._calls.to_device(
                self._address + offset, np.ascontiguousarray(array), self._region.device_id
            )
        except CudaError as error:
            raise self._failure(error) from error

    def _failure(self, error: CudaError) -> Internal:
        return Internal(f"failed to copy CUDA shared memory region '{self._region.name}': {error}")


def _close(calls: CudaCalls, address: int, device_id: int) -> None:
    try:
        calls.close(address, device_id)
    except CudaError as error:
        log.warning("failed to close CUDA IPC handle: %s", error)
