"""POSIX shared-memory objects for tests."""

from __future__ import annotations

import _posixshmem  # type: ignore[import-not-found]  # a module of the standard library without a stub
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager


class SharedObject:
    """A shared-memory object. Register a region with its `key`.

    It is read and written without a memory map, so that it can shrink.
    """

    def __init__(self, byte_size: int) -> None:
        self.key = f"/tritonpy-test-{secrets.token_hex(8)}"
        self._descriptor = _posixshmem.shm_open(
            self.key, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode=0o600
        )
        self.resize(byte_size)

    def resize(self, byte_size: int) -> None:
        """Truncate the object, or append zeros."""
        os.ftruncate(self._descriptor, byte_size)

    def write(self, content: bytes, offset: int = 0) -> None:
        """Write `content` at `offset`."""
        os.pwrite(self._descriptor, content, offset)

    def read(self, byte_size: int, offset: int = 0) -> bytes:
        """Return `byte_size` bytes at `offset`."""
        return os.pread(self._descriptor, byte_size, offset)

    def remove(self) -> None:
        """Unlink the object. Existing maps stay valid."""
        os.close(self._descriptor)
        _posixshmem.shm_unlink(self.key)


@contextmanager
def shared_object(byte_size: int, content: bytes = b"") -> Iterator[SharedObject]:
    """Provide an object of `byte_size` bytes that starts with `content`. Removes it at the end."""
    shared = SharedObject(byte_size)
    try:
        shared.write(content)
        yield shared
    finally:
        shared.remove()
