"""Tracking and limiting of the GPU memory that TensorRT allocates."""

from __future__ import annotations

import threading
from typing import Any

from tritonpy_backend_trt.cuda import Cuda, CudaRuntimeError


class AllocationTracker:
    """Counts allocated bytes, up to `limit` (None: no limit). Thread-safe."""

    def __init__(self, limit: int | None) -> None:
        self.limit = limit
        self.refused = 0  # size of the last allocation that exceeded the limit
        self._lock = threading.Lock()
        self._sizes: dict[int, int] = {}
        self._allocated_bytes = 0

    @property
    def allocated_bytes(self) -> int:
        """Number of bytes that are currently allocated."""
        return self._allocated_bytes

    def reserve(self, size: int) -> bool:
        """Reserve `size` bytes for an allocation; return False if they exceed the limit."""
        with self._lock:
            if self.limit is not None and self._allocated_bytes + size > self.limit:
                self.refused = size
                return False
            self._allocated_bytes += size
            return True

    def record(self, address: int, size: int) -> None:
        """Record the address of reserved bytes; address 0 means that the allocation failed."""
        with self._lock:
            if address:
                self._sizes[address] = size
            else:
                self._allocated_bytes -= size

    def remove(self, address: int) -> None:
        """Release the bytes allocated at `address`."""
        with self._lock:
            self._allocated_bytes -= self._sizes.pop(address)

    def limit_message(self) -> str:
        """Return a suffix for error texts; empty unless the limit prevented an allocation."""
        if not self.refused:
            return ""
        return (
            f"; parameter 'memory_limit_bytes' allows {self.limit} bytes, "
            f"{self._allocated_bytes} are in use and {self.refused} more were"
            " requested"
        )


def create_allocator(trt: Any, cuda: Cuda, tracker: AllocationTracker) -> Any:
    """Return an `IGpuAllocator` for the calling thread's device that updates `tracker`."""

    class Allocator(trt.IGpuAllocator):  # type: ignore[misc]
        def __init__(self) -> None:
            trt.IGpuAllocator.__init__(self)

        def allocate(self, size: int, _alignment: int, _flags: int) -> int | None:
            return _allocate(cuda, tracker, size)

        def allocate_async(
            self, size: int, _alignment: int, _flags: int, _stream: int
        ) -> int | None:
            return _allocate(cuda, tracker, size)

        def reallocate(self, _address: int, _alignment: int, _new_size: int) -> None:
            return None  # TensorRT keeps its current allocation

        def deallocate(self, address: int) -> bool:
            return _free(cuda, tracker, address)

        def deallocate_async(self, address: int, _stream: int) -> bool:
            return _free(cuda, tracker, address)

    return Allocator()


def _allocate(cuda: Cuda, tracker: AllocationTracker, size: int) -> int | None:
    if not size or not tracker.reserve(size):
        return None
    try:
        address = cuda.allocate(size)
    except CudaRuntimeError:
        address = 0  # TensorRT reports the failure
    tracker.record(address, size)
    return address or None


def _free(cuda: Cuda, tracker: AllocationTracker, address: int) -> bool:
    if address:
        try:
            cuda.free(address)  # waits for the device, so nothing uses the memory
        except CudaRuntimeError:
            return False
        tracker.remove(address)
    return True
