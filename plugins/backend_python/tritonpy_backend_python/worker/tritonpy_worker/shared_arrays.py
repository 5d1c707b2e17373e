"""Arrays that all instances of a model share: in mapped, write-protected memory."""

from __future__ import annotations

import mmap
import os
from collections.abc import Mapping
from contextlib import suppress
from fcntl import fcntl
from typing import TYPE_CHECKING, Any

import numpy as np

from .api.errors import TritonModelException
from .ipc import memory_file

if TYPE_CHECKING:
    from .api.shared_arrays import Array, Named

Layout = dict[str, tuple[str, tuple[int, ...], int]]  # type, shape and offset of each array

_ALIGNMENT = 64  # bytes, as frameworks expect
# From <linux/fcntl.h>: sealing, shrinking, growing, writing.
_F_ADD_SEALS, _SEAL_EVERYTHING = 1033, 1 | 2 | 4 | 8


def place(arrays: Named) -> tuple[int, Layout]:
    """Write arrays sequentially into new memory.

    Return its descriptor and the layout. Raises `TritonModelException` for an array of anything but
    numbers, `OSError` if there is no memory.
    """
    descriptor = memory_file.create(0)
    layout: Layout = {}
    try:
        end = 0
        for name, array in arrays.items() if isinstance(arrays, Mapping) else arrays:
            array = np.ascontiguousarray(_checked(name, array)).reshape(np.shape(array))  # noqa: PLW2901 - frees the original
            layout[name] = (array.dtype.str, array.shape, end)
            _write(descriptor, end, array)
            end += -(-array.nbytes // _ALIGNMENT) * _ALIGNMENT
        os.ftruncate(descriptor, max(end, 1))
        with suppress(OSError):  # a plain file has no seals
            fcntl(descriptor, _F_ADD_SEALS, _SEAL_EVERYTHING)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor, layout


def view(descriptor: int, layout: Mapping[str, Any]) -> dict[str, Array]:
    """Map the memory of `descriptor`, close it, and return the read-only arrays.

    Raises `OSError` on failure.
    """
    try:
        memory = mmap.mmap(
            descriptor, os.fstat(descriptor).st_size, mmap.MAP_PRIVATE, mmap.PROT_READ
        )
    finally:
        os.close(descriptor)
    return {
        name: np.ndarray(tuple(shape), np.dtype(dtype), memory, start)
        for name, (dtype, shape, start) in layout.items()
    }


def _checked(name: Any, array: Any) -> Array:
    if not isinstance(name, str) or not isinstance(array, np.ndarray):
        raise TritonModelException(
            f"Shared arrays must be numpy arrays with names, found {type(array).__name__} with "
            f"the name {name!r}."
        )
    if array.dtype.hasobject or np.dtype(array.dtype.str) != array.dtype:
        raise TritonModelException(
            f"Shared array '{name}' has elements of type {array.dtype}, which cannot be shared."
        )
    return array


def _write(descriptor: int, start: int, array: Array) -> None:
    data = array.reshape(-1).view(np.uint8).data
    while data:
        written = os.pwrite(descriptor, data, start)
        start += written
        data = data[written:]
