"""What a region is made of."""

from __future__ import annotations

from typing import Any, Protocol

import numpy.typing as npt


class Memory(Protocol):
    """The bytes of a region. Offsets and sizes were checked against what was registered.

    May be used from any thread; what it holds is given back with the last reference to it, and to what it returned.
    """

    def read(self, offset: int, size: int) -> memoryview:
        """Return `size` bytes from `offset`, not writable. Raises TritonError where they cannot be had."""

    def write(self, offset: int, array: npt.NDArray[Any]) -> None:
        """Copy `array` to `offset`. Raises TritonError where that memory cannot be had."""
