"""A piece of memory that two processes can map."""

from __future__ import annotations

import errno
import mmap
import os
import tempfile
from fcntl import fcntl

# Of <linux/fcntl.h>; the fcntl module of Python 3.9 has no name for them on every platform.
_F_ADD_SEALS, _SEAL_SHRINK = 1033, 2


def create(size: int) -> int:
    """Return the descriptor of `size` bytes of zeros without a name. Raises OSError where there is no room.

    A memfd where the platform has it: it does not count against a container's small /dev/shm. Elsewhere a file that is
    already deleted; its blocks are reserved, because a full disk would otherwise be found by a crash on first touch.
    """
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("tritonpy", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        reserve = os.ftruncate
    else:
        with tempfile.TemporaryFile(prefix="tritonpy-") as file:
            descriptor = os.dup(file.fileno())
        reserve = _allocate if hasattr(os, "posix_fallocate") else os.ftruncate
    try:
        reserve(descriptor, size)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def map_whole(descriptor: int) -> mmap.mmap:
    """Map all of it; the other side can not shrink it under the map any more. The descriptor stays the caller's.

    Raises OSError or ValueError for what cannot be mapped.
    """
    try:
        fcntl(descriptor, _F_ADD_SEALS, _SEAL_SHRINK)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a plain file has no seals; memory that refuses this one could shrink
            raise
    return mmap.mmap(descriptor, os.fstat(descriptor).st_size)


def _allocate(descriptor: int, size: int) -> None:
    os.posix_fallocate(descriptor, 0, size)
