"""Arrays that all instances of a model have in common: in memory that nobody can write to, mapped and never copied."""

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

Layout = dict[str, tuple[str, tuple[int, ...], int]]  # of each array: type, shape, where it begins

_ALIGNMENT = 64  # bytes, as frameworks want it
_F_ADD_SEALS, _SEAL_EVERYTHING = 1033, 1 | 2 | 4 | 8  # of <linux/fcntl.h>: more seals, shrinking, growing, writing


def place(arrays: Named) -> tuple[int, Layout]:
    """Write arrays into new memory, one after the other; return its descriptor, and what lies where.

    Raises TritonModelException for an array whose elements are not plain numbers, OSError where there is no room.
    """
    descriptor = memory_file.create(0)
    layout: Layout = {}
    try:
        end = 0
        for name, array in arrays.items() if isinstance(arrays, Mapping) else arrays:
            array = np.ascontiguousarray(_checked(name, array)).reshape(np.shape(array))  # noqa: PLW2901 - the other is freed
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
    """Return the arrays, read-only, in the memory of `descriptor`, which is closed. Raises OSError where it cannot be mapped."""
    try:
        memory = mmap.mmap(descriptor, os.fstat(descriptor).st_size, mmap.MAP_PRIVATE, mmap.PROT_READ)
    finally:
        os.close(descriptor)
    return {
        name: np.ndarray(tuple(shape), np.dtype(dtype), memory, start) for name, (dtype, shape, start) in layout.items()
    }


def _checked(name: Any, array: Any) -> Array:
    if not isinstance(name, str) or not isinstance(array, np.ndarray):
        raise TritonModelException(
            f"Shared arrays are numpy arrays with names, found {type(array).__name__} with the name {name!r}."
        )
    if array.dtype.hasobject or np.dtype(array.dtype.str) != array.dtype:
        raise TritonModelException(f"Shared array '{name}' has elements of type {array.dtype}, which cannot be shared.")
    return array


def _write(descriptor: int, start: int, array: Array) -> None:
    data = array.reshape(-1).view(np.uint8).data
    while data:
        written = os.pwrite(descriptor, data, start)
        start += written
        data = data[written:]
