"""An allocator of ranges in a region. Pure Python, without memory of its own."""

from __future__ import annotations

from bisect import bisect_left

ALIGNMENT = 256  # bytes; the alignment of CUDA's own allocations


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
                self._free[index : index + 1] = [(offset + size, size_free - size)] if size_free > size else []
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
