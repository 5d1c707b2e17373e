"""The interface of a region's memory."""

from __future__ import annotations

from typing import Any, Protocol

import numpy.typing as npt


class RegionMemory(Protocol):
    """The bytes of a region; the caller has checked offsets and sizes.

    Any thread may use it. The memory is released with the last reference to the object and to the
    views that it returned.
    """

    def read(self, offset: int, size: int) -> memoryview:
        """Return `size` bytes from `offset`, read-only. Raises TritonError if they do not exist."""

    def write(self, offset: int, array: npt.NDArray[Any]) -> None:
        """Copy `array` to `offset`. Raises TritonError if the memory does not exist."""
