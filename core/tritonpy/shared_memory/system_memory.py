"""Regions in host memory."""

from __future__ import annotations

import errno
import mmap
import os
from typing import Any

import numpy as np
import numpy.typing as npt

from tritonpy.shared_memory.object_key import open_object
from tritonpy_types import SystemRegion
from tritonpy_types.errors import InvalidArgument


class SystemMemory:
    """A mapped part of a POSIX shared-memory object; reads are views, writes copy once.

    The owner can shrink the object at any time, and access to a removed part would end this process
    with SIGBUS. So the size is checked before each use. The object may still shrink while a request
    with views of it is running.
    """

    def __init__(self, region: SystemRegion) -> None:
        """Map the object.

        Raises Internal if it does not exist, InvalidArgument if it is too small or cannot be
        mapped.
        """
        self._region = region
        descriptor = open_object(region.key)
        try:
            self._memory = _mapped(region, descriptor)  # has its own descriptor
        finally:
            os.close(descriptor)
        self._view = memoryview(self._memory).toreadonly()

    def read(self, offset: int, size: int) -> memoryview:
        """Return a view. Raises InvalidArgument if the object has become too small."""
        self._check(offset + size)
        return self._view[offset : offset + size]

    def write(self, offset: int, array: npt.NDArray[Any]) -> None:
        """Copy `array`. Raises InvalidArgument if the object has become too small."""
        self._check(offset + array.nbytes)
        if array.nbytes:
            np.copyto(np.ndarray(array.shape, array.dtype, self._memory, offset), array)

    def _check(self, end: int) -> None:
        # the size of the object, not of the map
        if self._region.offset + end > self._memory.size():
            raise InvalidArgument(
                f"Invalid offset + byte size for shared memory region: '{self._region.name}'"
            )


def _mapped(region: SystemRegion, descriptor: int) -> mmap.mmap:
    if region.offset + region.byte_size > os.fstat(descriptor).st_size:
        raise _refusal(region, "invalid args")
    if not region.byte_size:  # for mmap, 0 is the whole object
        raise _refusal(region, f"unable to process address space{os.strerror(errno.EINVAL)}")
    try:
        return mmap.mmap(descriptor, region.byte_size, offset=region.offset)
    except OSError as error:
        raise _refusal(region, f"unable to process address space{error.strerror}") from None


def _refusal(region: SystemRegion, reason: str) -> InvalidArgument:
    return InvalidArgument(f"failed to register shared memory region '{region.name}': {reason}")
