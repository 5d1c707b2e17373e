"""A region of memory that is allocated once and lent in pieces."""

from __future__ import annotations

import logging
import threading
import weakref
from collections import Counter, deque
from collections.abc import Callable
from typing import Generic, TypeVar

from tritonpy.cuda_calls import CudaError
from tritonpy.device_memory.arena import Arena
from tritonpy.device_memory.block import Block
from tritonpy.errors import Unavailable

log = logging.getLogger("tritonpy.memory")

_Kind = TypeVar("_Kind", bound=Block)


class _Region:
    """Memory of the allocator; freed with the last reference, never at the end of the process, when CUDA may be gone."""

    def __init__(self, address: int, free: Callable[[int], None]) -> None:
        self.address = address
        weakref.finalize(self, _freed, free, address).atexit = False


class Pool(Generic[_Kind]):
    """`total` bytes that `allocate` gives (an address), with the first piece that is asked for. Every method may be called from any thread.

    A piece comes back when it is forgotten. Both functions raise CudaError; a region that cannot be had is warned of once, `name` says what it is, and is not
    tried again. `misses` counts what there was no room for.
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
        # Filled from wherever the last reference to a piece goes, in the middle of anything: that may take no lock.
        self._returned: deque[tuple[int | None, int, object]] = deque()

    @property
    def usable(self) -> bool:
        """Whether there is, or may be, anything to lend."""
        return self._usable

    def take(self, byte_size: int, owner: object) -> _Kind | None:
        """Return a piece, which counts as the owner's; None where there is no room."""
        with self._lock:
            self._settle()
            region = self._open() if self._usable else None
            offset = None if region is None else self._arena.take(byte_size)
            if region is None or offset is None:
                self.misses += 1
                return None
            self._used += byte_size
            self._held[owner] += byte_size
        return self._lent(region, offset, byte_size, owner)

    def take_apart(self, byte_size: int, owner: object) -> _Kind:
        """Return a piece that is allocated for itself, beside the region. Raises Unavailable."""
        try:
            region = _Region(self._allocate(byte_size), self._free)
        except CudaError as error:
            raise Unavailable(f"Failed to allocate {self._name} with byte size {byte_size}: {error}") from error
        with self._lock:
            self._held[owner] += byte_size
        return self._lent(region, None, byte_size, owner)

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
        """Lend nothing more; the region goes with its last piece."""
        with self._lock:
            self._usable, self._region = False, None

    def _lent(self, region: _Region, offset: int | None, byte_size: int, owner: object) -> _Kind:
        piece = self._kind(region.address + (offset or 0), byte_size, self._device, region)
        weakref.finalize(piece, self._returned.append, (offset, byte_size, owner)).atexit = False
        return piece

    def _open(self) -> _Region | None:
        if self._region is None:
            try:
                self._region = _Region(self._allocate(self.total), self._free)
            except CudaError as error:
                self._usable = False
                log.warning("Unable to allocate %s, its pool will not be available: %s", self._name, error)
            else:
                log.info("the pool of %s has %d bytes", self._name, self.total)
        return self._region

    def _settle(self) -> None:
        while self._returned:
            offset, byte_size, owner = self._returned.popleft()
            if offset is not None:
                self._arena.give(offset, byte_size)
                self._used -= byte_size
            self._held[owner] -= byte_size
            if not self._held[owner]:
                del self._held[owner]


def _freed(free: Callable[[int], None], address: int) -> None:
    try:
        free(address)
    except CudaError as error:
        log.warning("failed to free memory: %s", error)
