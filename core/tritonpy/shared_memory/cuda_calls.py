"""The few calls of CUDA that regions need, by way of cuda-python."""

from __future__ import annotations

import ctypes
import importlib
from typing import Any

import numpy as np
import numpy.typing as npt

HANDLE_BYTES = 64


class CudaError(Exception):
    """CUDA refused; the text is its own."""


class CudaCalls:
    """Raises ImportError where cuda-python is not installed. Every other method raises CudaError."""

    def __init__(self) -> None:
        self._runtime: Any = importlib.import_module("cuda.bindings.runtime")
        self._driver: Any = importlib.import_module("cuda.bindings.driver")

    def open(self, handle: bytes, device_id: int) -> tuple[int, int]:
        """Return address and size in bytes of the memory of another process; `close` it with that address."""
        if len(handle) != HANDLE_BYTES:
            raise CudaError(f"a handle has {HANDLE_BYTES} bytes, this one {len(handle)}")
        runtime = self._runtime
        wanted = runtime.cudaIpcMemHandle_t()
        ctypes.memmove(wanted.getPtr(), handle, HANDLE_BYTES)
        self._on(device_id)
        address = int(self._call(runtime.cudaIpcOpenMemHandle, wanted, runtime.cudaIpcMemLazyEnablePeerAccess))
        try:
            _, size = self._call(self._driver.cuMemGetAddressRange, address)
        except CudaError:
            self.close(address, device_id)
            raise
        return address, int(size)

    def close(self, address: int, device_id: int) -> None:
        """Give back what `open` gave."""
        self._on(device_id)
        self._call(self._runtime.cudaIpcCloseMemHandle, address)

    def to_host(self, array: npt.NDArray[np.uint8], address: int, device_id: int) -> None:
        """Fill `array` from the device."""
        self._copy(array.ctypes.data, address, array.nbytes, device_id)

    def to_device(self, address: int, array: npt.NDArray[Any], device_id: int) -> None:
        """Copy the contiguous `array` to the device; it is there when this returns."""
        self._copy(address, array.ctypes.data, array.nbytes, device_id)

    def _copy(self, target: int, source: int, size: int, device_id: int) -> None:
        runtime = self._runtime
        self._on(device_id)
        self._call(runtime.cudaMemcpy, target, source, size, runtime.cudaMemcpyKind.cudaMemcpyDefault)
        self._call(runtime.cudaStreamSynchronize, 0)  # from pageable memory the copy may return before its end

    def _on(self, device_id: int) -> None:
        self._call(self._runtime.cudaSetDevice, device_id)

    def _call(self, function: Any, *arguments: Any) -> Any:
        try:
            error, *results = function(*arguments)
        except OverflowError as beyond:  # the number of a device, as a client gives it
            raise CudaError(f"{function.__name__}: {beyond}") from None
        if int(error):
            raise CudaError(f"{function.__name__}: {error.name}")
        return results[0] if len(results) == 1 else results
