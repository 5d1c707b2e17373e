"""Which parts of a region are taken. Pure."""

from __future__ import annotations

from bisect import bisect_left

ALIGNMENT = 256  # bytes; what CUDA gives its own allocations


class Arena:
    """The free ranges of `byte_size` bytes; neighbours are one range. Not safe for threads."""

    def __init__(self, byte_size: int) -> None:
        self._free = [(0, byte_size)]  # offset and size, by offset

    def take(self, byte_size: int) -> int | None:
        """Return the offset of a range of that size, a multiple of `ALIGNMENT`; None where no free range is large enough."""
        size = room(byte_size)
        for index, (offset, free) in enumerate(self._free):
            if free >= size:
                self._free[index : index + 1] = [(offset + size, free - size)] if free > size else []
                return offset
        return None

    def give(self, offset: int, byte_size: int) -> None:
        """Free a range that was taken."""
        size = room(byte_size)
        index = bisect_left(self._free, (offset, 0))
        first = last = index
        if index < len(self._free) and self._free[index][0] == offset + size:
            size += self._free[index][1]
            last = index + 1
        if index and sum(self._free[index - 1]) == offset:
            first = index - 1
            offset, size = self._free[first][0], self._free[first][1] + size
        self._free[first:last] = [(offset, size)]


def room(byte_size: int) -> int:
    """Return how much a range of `byte_size` bytes takes."""
    return -(-max(byte_size, 1) // ALIGNMENT) * ALIGNMENT
