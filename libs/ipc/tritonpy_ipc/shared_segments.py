"""Shared memory segments, each lent to the other process for one frame."""

from __future__ import annotations

import mmap
import os
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from . import memory_file
from .frame import ProtocolError

_SMALLEST = 1 << 16
# Bytes of unused segments kept for later frames: fresh memory costs a page fault per 4 KiB.
KEEP_BYTES = 128 << 20
KEEP_SEGMENTS = 32  # most segments kept: each is an open descriptor in both processes


class SharedSegment:
    """A segment of the pool. `descriptor` is set until it has been sent to the other end."""

    __slots__ = ("array", "descriptor", "id", "size")

    def __init__(self, number: int, size: int) -> None:
        self.id = number
        self.size = size
        self.descriptor: int | None = memory_file.create(size)
        try:
            self.array = np.frombuffer(mmap.mmap(self.descriptor, size), np.uint8)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the descriptor if it was not sent; the memory is freed with its last view."""
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None


class SegmentPool:
    """Allocates segments in power-of-two sizes and reuses those that are returned.

    `release` may run in another thread, and inside any other method, because a destructor may call
    it. It therefore takes no lock.
    """

    def __init__(self, keep: int = KEEP_BYTES) -> None:
        self._keep = keep
        self._next = 1
        self._lent: dict[int, SharedSegment] = {}
        self._returned: deque[SharedSegment] = deque()
        self._unused: OrderedDict[int, SharedSegment] = OrderedDict()
        self._unused_bytes = 0
        self._discarded: list[int] = []

    def acquire(self, size: int) -> SharedSegment:
        """Return a segment of at least `size` bytes. Raises `OSError` if there is no memory."""
        self._reuse_returned()
        size = max(_SMALLEST, 1 << (size - 1).bit_length())
        segment = next((each for each in self._unused.values() if each.size == size), None)
        if segment is None:
            segment = SharedSegment(self._next, size)
            self._next += 1
        else:
            del self._unused[segment.id]
            self._unused_bytes -= size
        self._lent[segment.id] = segment
        return segment

    def release(self, numbers: Sequence[int]) -> None:
        """Take back segments that the other end returned.

        Raises `ProtocolError` for a segment that is not lent.
        """
        for number in numbers:
            segment = self._lent.pop(number, None)
            if segment is None:
                raise ProtocolError(f"segment {number} was returned but is not lent")
            self._returned.append(segment)

    def discarded(self) -> list[int]:
        """Return the segments discarded since the last call, which the other end may unmap."""
        self._reuse_returned()
        discarded, self._discarded = self._discarded, []
        return discarded

    @property
    def unused_bytes(self) -> int:
        """Bytes of memory kept for reuse."""
        return self._unused_bytes + sum(segment.size for segment in tuple(self._returned))

    def close(self) -> None:
        """Free all segments without notifying the other end."""
        for segment in (*self._lent.values(), *self._returned, *self._unused.values()):
            segment.close()
        self._lent.clear()
        self._returned.clear()
        self._unused.clear()
        self._unused_bytes = 0

    def _reuse_returned(self) -> None:
        while self._returned:
            segment = self._returned.popleft()
            self._unused[segment.id] = segment
            self._unused_bytes += segment.size
        while self._unused_bytes > self._keep or len(self._unused) > KEEP_SEGMENTS:
            _, segment = self._unused.popitem(last=False)
            self._unused_bytes -= segment.size
            segment.close()
            self._discarded.append(segment.id)


class SegmentMap:
    """Maps the segments of the other end and records those whose last view is gone."""

    def __init__(self, on_return: Callable[[], None] | None = None) -> None:
        self._maps: dict[int, mmap.mmap] = {}
        self._watched: dict[int, weakref.ref[np.ndarray]] = {}
        self._on_return = on_return
        self.returned: deque[int] = deque()  # segments to return

    def map(self, number: int, descriptor: int) -> None:
        """Map a new segment; the caller keeps the descriptor.

        Raises `ProtocolError` if it cannot be mapped.
        """
        if number in self._maps:
            raise ProtocolError(f"segment {number} is already mapped")
        try:
            self._maps[number] = memory_file.map_whole(descriptor)
        except (OSError, ValueError) as error:
            raise ProtocolError(f"segment {number} cannot be mapped: {error}") from error

    def view(self, number: int, used: int) -> np.ndarray:
        """Return the first `used` bytes of a segment, which is in use until the last view is gone.

        Raises `ProtocolError`.
        """
        memory = self._maps.get(number)
        if memory is None or used > len(memory) or number in self._watched:
            raise ProtocolError(f"segment {number} is not available")
        # Each view has this new array as its base, so the array is freed with the last view.
        array = np.frombuffer(memory, np.uint8, used)
        self._watched[number] = weakref.ref(array, partial(self._on_view_freed, number))
        return array

    def unmap(self, numbers: Sequence[int]) -> None:
        """Unmap segments that the other end has discarded."""
        for number in numbers:
            self._maps.pop(number, None)

    def close(self) -> None:
        """Unmap all segments without notifying the other end; views stay valid."""
        self._maps.clear()
        self._watched.clear()

    def _on_view_freed(self, number: int, _view: object) -> None:
        # Runs where the last view is freed, possibly inside any other code: it must take no lock.
        if self._watched.pop(number, None) is not None:
            self.returned.append(number)
            if self._on_return is not None:
                self._on_return()
