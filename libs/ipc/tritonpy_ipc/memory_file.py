"""Memory that two processes can map."""

from __future__ import annotations

import errno
import mmap
import os
import tempfile
from fcntl import fcntl

# From <linux/fcntl.h>; the fcntl module of Python 3.9 lacks these names on some platforms.
_F_ADD_SEALS, _SEAL_SHRINK = 1033, 2


def create(size: int) -> int:
    """Return the descriptor of `size` zero bytes of anonymous memory.

    Uses a memfd where available, which does not count against a container's small /dev/shm. Other
    platforms use a deleted file. Its blocks are reserved first, because otherwise a full disk would
    crash the process on first access. Raises `OSError` if there is not enough memory.
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
    """Map all of the memory and keep the other end from shrinking it.

    The caller keeps the descriptor. Raises `OSError` or `ValueError` if it cannot be mapped.
    """
    try:
        fcntl(descriptor, _F_ADD_SEALS, _SEAL_SHRINK)
    except OSError as error:
        # A plain file has no seals; memory that refuses the seal could shrink.
        if error.errno != errno.EINVAL:
            raise
    return mmap.mmap(descriptor, os.fstat(descriptor).st_size)


def _allocate(descriptor: int, size: int) -> None:
    os.posix_fallocate(descriptor, 0, size)
