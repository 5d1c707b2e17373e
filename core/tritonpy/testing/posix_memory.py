"""POSIX shared memory, as clients have it."""

from __future__ import annotations

import _posixshmem  # type: ignore[import-not-found]  # of the standard library, and in no stub
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager


class SharedObject:
    """An object of shared memory; `key` is what a region is registered with. Read and written without a map, so that it may shrink."""

    def __init__(self, byte_size: int) -> None:
        self.key = f"/tritonpy-test-{secrets.token_hex(8)}"
        self._descriptor = _posixshmem.shm_open(self.key, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode=0o600)
        self.resize(byte_size)

    def resize(self, byte_size: int) -> None:
        """Cut it off, or append zeros."""
        os.ftruncate(self._descriptor, byte_size)

    def write(self, content: bytes, offset: int = 0) -> None:
        """Put `content` to `offset`."""
        os.pwrite(self._descriptor, content, offset)

    def read(self, byte_size: int, offset: int = 0) -> bytes:
        """Return what is at `offset`."""
        return os.pread(self._descriptor, byte_size, offset)

    def remove(self) -> None:
        """Take its name away; who has it mapped keeps it."""
        os.close(self._descriptor)
        _posixshmem.shm_unlink(self.key)


@contextmanager
def shared_object(byte_size: int, content: bytes = b"") -> Iterator[SharedObject]:
    """Make an object of `byte_size` bytes that begins with `content`, and remove it in the end."""
    made = SharedObject(byte_size)
    try:
        made.write(content)
        yield made
    finally:
        made.remove()
