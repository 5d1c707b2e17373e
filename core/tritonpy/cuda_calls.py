"""The few calls of CUDA that the server itself needs, by way of cuda-python."""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from tritonpy.devices import visible_gpus
from tritonpy.installation import install_command

HANDLE_BYTES = 64


class CudaError(Exception):
    """CUDA refused; the text is its own."""


def open_cuda_calls() -> CudaCalls:
    """Return the calls. Raises CudaError where there is nothing to call."""
    if not visible_gpus():
        raise CudaError("there is no GPU")
    try:
        return CudaCalls()
    except ImportError as error:
        raise CudaError(f"cuda-python is not there ({install_command('tritonpy[cuda]')}): {error}") from None


class CudaCalls:
    """Raises ImportError where cuda-python is not installed. Every other method raises CudaError.

    Threads of frameworks come here: the device that is current on the calling thread stays the one that it was.
    """

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
        with self._on(device_id):
            address = int(self._call(runtime.cudaIpcOpenMemHandle, wanted, runtime.cudaIpcMemLazyEnablePeerAccess))
            try:
                _, size = self._call(self._driver.cuMemGetAddressRange, address)
            except CudaError:
                self.close(address, device_id)
                raise
        return address, int(size)

    def close(self, address: int, device_id: int) -> None:
        """Give back what `open` gave."""
        with self._on(device_id):
            self._call(self._runtime.cudaIpcCloseMemHandle, address)

    def pin(self, size: int) -> int:
        """Return the address of so many bytes of the host's memory that every GPU copies from and to at full speed."""
        return int(self._call(self._runtime.cudaHostAlloc, size, self._runtime.cudaHostAllocPortable))

    def unpin(self, address: int) -> None:
        """Free what `pin` gave."""
        self._call(self._runtime.cudaFreeHost, address)

    def allocate(self, size: int, device_id: int) -> int:
        """Return the address of so many bytes of a GPU's memory."""
        with self._on(device_id):
            return int(self._call(self._runtime.cudaMalloc, size))

    def free(self, address: int, device_id: int) -> None:
        """Free what `allocate` gave."""
        with self._on(device_id):
            self._call(self._runtime.cudaFree, address)

    def to_host(self, array: npt.NDArray[np.uint8], address: int, device_id: int) -> None:
        """Fill `array` from the device."""
        self._copy(array.ctypes.data, address, array.nbytes, device_id)

    def to_device(self, address: int, array: npt.NDArray[Any], device_id: int) -> None:
        """Copy the contiguous `array` to the device; it is there when this returns."""
        self._copy(address, array.ctypes.data, array.nbytes, device_id)

    def _copy(self, target: int, source: int, size: int, device_id: int) -> None:
        runtime = self._runtime
        with self._on(device_id):
            self._call(runtime.cudaMemcpy, target, source, size, runtime.cudaMemcpyKind.cudaMemcpyDefault)
            self._call(runtime.cudaStreamSynchronize, 0)  # from pageable memory the copy may return before its end

    @contextmanager
    def _on(self, device_id: int) -> Iterator[None]:
        before = int(self._call(self._runtime.cudaGetDevice))
        if before == device_id:
            yield
            return
        self._call(self._runtime.cudaSetDevice, device_id)
        try:
            yield
        finally:
            self._call(self._runtime.cudaSetDevice, before)

    def _call(self, function: Any, *arguments: Any) -> Any:
        try:
            error, *results = function(*arguments)
        except OverflowError as beyond:  # the number of a device, as a client gives it
            raise CudaError(f"{function.__name__}: {beyond}") from None
        if int(error):
            raise CudaError(f"{function.__name__}: {error.name}")
        return results[0] if len(results) == 1 else results
