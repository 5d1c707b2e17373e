"""The few CUDA calls that the server itself needs, through cuda-python (extra `cuda`)."""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from tritonpy.plugins import install_command
from tritonpy_device_cuda.gpus import visible_gpus

HANDLE_BYTES = 64


class CudaError(Exception):
    """A CUDA call failed; the text is CUDA's own."""


def open_cuda_calls() -> CudaCalls:
    """Return the CUDA calls. Raises CudaError without a GPU or without cuda-python."""
    if not visible_gpus():
        raise CudaError("there is no GPU")
    try:
        return CudaCalls()
    except ImportError as error:
        raise CudaError(
            f"cuda-python is not installed ({install_command('tritonpy-device-cuda[cuda]')}): "
            f"{error}"
        ) from None


class CudaCalls:
    """Calls of CUDA, with error checks.

    The constructor raises ImportError if cuda-python is not installed. All other methods raise
    CudaError. They keep the calling thread's current device, since frameworks' threads call them,
    too.
    """

    def __init__(self) -> None:
        self._runtime: Any = importlib.import_module("cuda.bindings.runtime")
        self._driver: Any = importlib.import_module("cuda.bindings.driver")

    def open(self, handle: bytes, device_id: int) -> tuple[int, int]:
        """Return address and size (bytes) of another process's memory; `close` it by address."""
        if len(handle) != HANDLE_BYTES:
            raise CudaError(f"a handle has {HANDLE_BYTES} bytes, this one {len(handle)}")
        runtime = self._runtime
        ipc_handle = runtime.cudaIpcMemHandle_t()
        ctypes.memmove(ipc_handle.getPtr(), handle, HANDLE_BYTES)
        with self._on(device_id):
            address = int(
                self._call(
                    runtime.cudaIpcOpenMemHandle, ipc_handle, runtime.cudaIpcMemLazyEnablePeerAccess
                )
            )
            try:
                _, size = self._call(self._driver.cuMemGetAddressRange, address)
            except CudaError:
                self.close(address, device_id)
                raise
        return address, int(size)

    def close(self, address: int, device_id: int) -> None:
        """Close memory that `open` returned."""
        with self._on(device_id):
            self._call(self._runtime.cudaIpcCloseMemHandle, address)

    def pin(self, size: int) -> int:
        """Allocate `size` bytes of pinned host memory, which every GPU copies at full speed."""
        return int(
            self._call(self._runtime.cudaHostAlloc, size, self._runtime.cudaHostAllocPortable)
        )

    def unpin(self, address: int) -> None:
        """Free memory that `pin` returned."""
        self._call(self._runtime.cudaFreeHost, address)

    def allocate(self, size: int, device_id: int) -> int:
        """Allocate `size` bytes of a GPU's memory and return the address."""
        with self._on(device_id):
            return int(self._call(self._runtime.cudaMalloc, size))

    def free(self, address: int, device_id: int) -> None:
        """Free memory that `allocate` returned."""
        with self._on(device_id):
            self._call(self._runtime.cudaFree, address)

    def to_host(self, array: npt.NDArray[np.uint8], address: int, device_id: int) -> None:
        """Fill `array` from the device."""
        self._copy(array.ctypes.data, address, array.nbytes, device_id)

    def to_device(self, address: int, array: npt.NDArray[Any], device_id: int) -> None:
        """Copy the contiguous `array` to the device; returns when the copy is complete."""
        self._copy(address, array.ctypes.data, array.nbytes, device_id)

    def _copy(self, target: int, source: int, size: int, device_id: int) -> None:
        runtime = self._runtime
        with self._on(device_id):
            self._call(
                runtime.cudaMemcpy, target, source, size, runtime.cudaMemcpyKind.cudaMemcpyDefault
            )
            # a copy from pageable memory may return before it is complete
            self._call(runtime.cudaStreamSynchronize, 0)

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
        except OverflowError as overflow:  # a device number from a client may be out of range
            raise CudaError(f"{function.__name__}: {overflow}") from None
        if int(error):
            raise CudaError(f"{function.__name__}: {error.name}")
        return results[0] if len(results) == 1 else results
