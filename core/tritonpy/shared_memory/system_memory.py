"""Regions in the memory of the host."""

from __future__ import annotations

import errno
import mmap
import os
from typing import Any

import numpy as np
import numpy.typing as npt

from tritonpy.errors import InvalidArgument
from tritonpy.shared_memory.object_key import open_object
from tritonpy.types import SystemRegion


class SystemMemory:
    """A mapped part of a POSIX shared-memory object: what is read is a view, what is written is copied once.

    Its owner can shrink the object at any time, and to touch what is gone would end this process with SIGBUS. So its size is asked again
    before each use; what remains is that it shrinks while a request that has its views is running.
    """

    def __init__(self, region: SystemRegion) -> None:
        """Map it. Raises Internal where there is no such object, InvalidArgument where it is too small or cannot be mapped."""
        self._region = region
        descriptor = open_object(region.key)
        try:
            self._memory = _mapped(region, descriptor)  # has a descriptor of its own
        finally:
            os.close(descriptor)
        self._view = memoryview(self._memory).toreadonly()

    def read(self, offset: int, size: int) -> memoryview:
        """Return a view. Raises InvalidArgument where the object has become too small."""
        self._check(offset + size)
        return self._view[offset : offset + size]

    def write(self, offset: int, array: npt.NDArray[Any]) -> None:
        """Copy `array`. Raises InvalidArgument where the object has become too small."""
        self._check(offset + array.nbytes)
        if array.nbytes:
            np.copyto(np.ndarray(array.shape, array.dtype, self._memory, offset), array)

    def _check(self, end: int) -> None:
        if self._region.offset + end > self._memory.size():  # the object's, not the map's
            raise InvalidArgument(f"Invalid offset + byte size for shared memory region: '{self._region.name}'")


def _mapped(region: SystemRegion, descriptor: int) -> mmap.mmap:
    if region.offset + region.byte_size > os.fstat(descriptor).st_size:
        raise _refusal(region, "invalid args")
    if not region.byte_size:  # to mmap it is the whole object
        raise _refusal(region, f"unable to process address space{os.strerror(errno.EINVAL)}")
    try:
        return mmap.mmap(descriptor, region.byte_size, offset=region.offset)
    except OSError as error:
        raise _refusal(region, f"unable to process address space{error.strerror}") from None


def _refusal(region: SystemRegion, reason: str) -> InvalidArgument:
    return InvalidArgument(f"failed to register shared memory region '{region.name}': {reason}")
