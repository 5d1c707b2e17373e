"""Arrays in the memory of a GPU."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from . import cuda


class DeviceArray:
    """A C-contiguous array at an address of a CUDA device. `owner` keeps the memory alive."""

    __slots__ = ("device", "dtype", "owner", "pointer", "shape")

    def __init__(
        self,
        owner: Any,
        pointer: int,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        device: tuple[int, int],
    ) -> None:
        """`device` is DLPack's device type and number.

        `dtype` is the type of a copy on the host.
        """
        self.owner = owner
        self.pointer = pointer
        self.shape = shape
        self.dtype = dtype
        self.device = device

    @property
    def nbytes(self) -> int:
        """The size of the array in bytes."""
        return prod(self.shape) * int(self.dtype.itemsize)

    def to_host(self) -> np.ndarray[Any, Any]:
        """Return a copy on the host. Raises `TritonModelException` if the device cannot be read."""
        array = np.empty(self.shape, self.dtype)
        if array.size:
            cuda.copy_to_host(
                self.device[1], self.pointer, array.__array_interface__["data"][0], array.nbytes
            )
        return array
