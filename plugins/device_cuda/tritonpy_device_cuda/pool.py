"""A pool: one region of memory, allocated once and lent in blocks."""

from __future__ import annotations

import logging
import threading
import weakref
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable
from typing import Generic, TypeVar

from tritonpy import Unavailable
from tritonpy_device_cuda.block import MemoryBlock
from tritonpy_device_cuda.cuda_calls import CudaError

log = logging.getLogger("tritonpy.memory")

ALIGNMENT = 256  # bytes; the alignment of CUDA's own allocations

_Kind = TypeVar("_Kind", bound=MemoryBlock)


class Arena:
    """The free ranges of `byte_size` bytes; adjacent ones are merged. Not thread-safe."""

    def __init__(self, byte_size: int) -> None:
        self._free = [(0, byte_size)]  # offset and size, sorted by offset

    def take(self, byte_size: int) -> int | None:
        """Return the offset of a new range, a multiple of `ALIGNMENT`.

        None if no free range is large enough.
        """
        size = aligned_size(byte_size)
        for index, (offset, size_free) in enumerate(self._free):
            if size_free >= size:
                self._free[index : index + 1] = (
                    [(offset + size, size_free - size)] if size_free > size else []
                )
                return offset
        return None

    def free(self, offset: int, byte_size: int) -> None:
        """Free a range that was taken."""
        size = aligned_size(byte_size)
        index = bisect_left(self._free, (offset, 0))
        first = last = index
        if index < len(self._free) and self._free[index][0] == offset + size:
            size += self._free[index][1]
            last = index + 1
        if index and sum(self._free[index - 1]) == offset:
            first = index - 1
            offset, size = self._free[first][0], self._free[first][1] + size
        self._free[first:last] = [(offset, size)]


def aligned_size(byte_size: int) -> int:
    """Return the size that a range of `byte_size` bytes occupies."""
    return -(-max(byte_size, 1) // ALIGNMENT) * ALIGNMENT


class _Region:
    """Memory of the allocator, freed with the last reference.

    It is not freed at the end of the process, when CUDA may be gone.
    """

    def __init__(self, address: int, free: Callable[[int], None]) -> None:
        self.address = address
        weakref.finalize(self, _freed, free, address).atexit = False


class Pool(Generic[_Kind]):
    """Lends blocks of a region of `total` bytes, which is allocated at the first request.

    Any thread may call any method. A block returns to the pool when it is garbage-collected.
    `allocate` returns an address; it and `free` raise CudaError. If the region cannot be allocated,
    the pool logs one warning with `name` and does not retry. `misses` counts requests that found
    the pool full.
    """

    def __init__(
        self,
        name: str,
        total: int,
        kind: type[_Kind],
        allocate: Callable[[int], int],
        free: Callable[[int], None],
        device: int = 0,
    ) -> None:
        self.total = total
        self.misses = 0
        self._name = name
        self._kind = kind
        self._allocate = allocate
        self._free = free
        self._device = device
        self._lock = threading.Lock()
        self._region: _Region | None = None
        self._usable = total > 0
        self._arena = Arena(total)
        self._held: Counter[object] = Counter()
        self._used = 0
        # Filled by finalizers, which run at any point of any thread and must take no lock.
        self._returned: deque[tuple[int | None, int, object]] = deque()

    @property
    def usable(self) -> bool:
        """Whether the pool has, or may get, memory to lend."""
        return self._usable

    def take(self, byte_size: int, owner: object) -> _Kind | None:
        """Return a block, which is charged to `owner`; None if the pool is full."""
        with self._lock:
            self._settle()
            region = self._open() if self._usable else None
            offset = None if region is None else self._arena.take(byte_size)
            if region is None or offset is None:
                self.misses += 1
                return None
            self._used += byte_size
            self._held[owner] += byte_size
        return self._block(region, offset, byte_size, owner)

    def allocate_separately(self, byte_size: int, owner: object) -> _Kind:
        """Return a block that is allocated separately from the region. Raises Unavailable."""
        try:
            region = _Region(self._allocate(byte_size), self._free)
        except CudaError as error:
            raise Unavailable(
                f"Failed to allocate {self._name} with byte size {byte_size}: {error}"
            ) from error
        with self._lock:
            self._held[owner] += byte_size
        return self._block(region, None, byte_size, owner)

    def used(self) -> int:
        """Return how many bytes of the region are lent."""
        with self._lock:
            self._settle()
            return self._used

    def held(self, owner: object) -> int:
        """Return how many bytes are lent to `owner`."""
        with self._lock:
            self._settle()
            return self._held.get(owner, 0)

    def close(self) -> None:
        """Lend nothing more; the region is freed with its last block."""
        with self._lock:
            self._usable, self._region = False, None

    def _block(self, region: _Region, offset: int | None, byte_size: int, owner: object) -> _Kind:
        block = self._kind(region.address + (offset or 0), byte_size, self._device, region)
        weakref.finalize(block, self._returned.append, (offset, byte_size, owner)).atexit = False
        return block

    def _open(self) -> _Region | None:
        if self._region is None:
            try:
                self._region = _Region(self._allocate(self.total), self._free)
            except CudaError as error:
                self._usable = False
                log.warning(
                    "Unable to allocate %s, its pool will not be available: %s", self._name, error
                )
            else:
                log.info("the pool of %s has %d bytes", self._name, self.total)
        return self._region

    def _settle(self) -> None:
        while self._returned:
            offset, byte_size, owner = self._returned.popleft()
            if offset is not None:
                self._arena.free(offset, byte_size)
                self._used -= byte_size
            self._held[owner] -= byte_size
            if not self._held[owner]:
                del self._held[owner]


def _freed(free: Callable[[int], None], address: int) -> None:
    try:
        free(address)
    except CudaError as error:
        log.warning("failed to free memory: %s", error)
