"""The memory that TensorRT takes on a GPU, counted and bounded."""

from __future__ import annotations

import threading
from typing import Any

from tritonpy_backend_trt.cuda import Cuda, CudaFailure


class Ledger:
    """What is allocated, in bytes, of at most `limit` (None: of any amount). From any thread."""

    def __init__(self, limit: int | None) -> None:
        self.limit = limit
        self.refused = 0  # size of the last allocation that there was no room for
        self._lock = threading.Lock()
        self._sizes: dict[int, int] = {}
        self._held = 0

    @property
    def held(self) -> int:
        """Bytes that are allocated now."""
        return self._held

    def reserve(self, size: int) -> bool:
        """Count `size` bytes that are about to be allocated; False where that were too many."""
        with self._lock:
            if self.limit is not None and self._held + size > self.limit:
                self.refused = size
                return False
            self._held += size
            return True

    def note(self, address: int, size: int) -> None:
        """Remember where reserved bytes lie; address 0 is that they could not be had."""
        with self._lock:
            if address:
                self._sizes[address] = size
            else:
                self._held -= size

    def drop(self, address: int) -> None:
        """Forget what lies at `address`."""
        with self._lock:
            self._held -= self._sizes.pop(address)

    def complaint(self) -> str:
        """Return what to add to an error: empty unless the limit was in the way."""
        if not self.refused:
            return ""
        return (
            f"; parameter 'memory_limit_bytes' allows {self.limit} bytes, {self._held} are in use and {self.refused} more were"
            " asked for"
        )


def allocator_of(trt: Any, cuda: Cuda, ledger: Ledger) -> Any:
    """Return an `IGpuAllocator` that takes memory of the calling thread's device and keeps the ledger."""

    class Allocator(trt.IGpuAllocator):  # type: ignore[misc]
        def __init__(self) -> None:
            trt.IGpuAllocator.__init__(self)

        def allocate(self, size: int, _alignment: int, _flags: int) -> int | None:
            return _allocated(cuda, ledger, size)

        def allocate_async(self, size: int, _alignment: int, _flags: int, _stream: int) -> int | None:
            return _allocated(cuda, ledger, size)

        def reallocate(self, _address: int, _alignment: int, _new_size: int) -> None:
            return None  # TensorRT goes on with what it has

        def deallocate(self, address: int) -> bool:
            return _freed(cuda, ledger, address)

        def deallocate_async(self, address: int, _stream: int) -> bool:
            return _freed(cuda, ledger, address)

    return Allocator()


def _allocated(cuda: Cuda, ledger: Ledger, size: int) -> int | None:
    if not size or not ledger.reserve(size):
        return None
    try:
        address = cuda.allocate(size)
    except CudaFailure:
        address = 0  # TensorRT says so in its own words
    ledger.note(address, size)
    return address or None


def _freed(cuda: Cuda, ledger: Ledger, address: int) -> bool:
    if address:
        try:
            cuda.free(address)  # waits for the device: nothing uses the memory any more
        except CudaFailure:
            return False
        ledger.drop(address)
    return True
