"""File locks between processes and threads. A holder of an exclusive lock may delete the file."""

from __future__ import annotations

import contextlib
import fcntl
import os
import weakref
from collections.abc import Callable
from pathlib import Path
from types import TracebackType


class FileLock:
    """A held lock.

    It is released by `release`, at the end of a `with` block, or when the process ends. The kernel
    ties the lock to an open file, not to a process. So two threads of a process exclude each other,
    and a child process that inherits `descriptor` keeps the lock while it lives.
    """

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.release = weakref.finalize(self, os.close, descriptor)

    @classmethod
    def exclusive(cls, path: Path, waiting: Callable[[], None]) -> FileLock:
        """Wait for an exclusive lock on `path`, which is created.

        Calls `waiting` if the lock is held.
        """
        try:
            return cls(_locked(path, os.O_RDWR | os.O_CREAT, fcntl.LOCK_EX | fcntl.LOCK_NB))
        except BlockingIOError:
            waiting()
            return cls(_locked(path, os.O_RDWR | os.O_CREAT, fcntl.LOCK_EX))

    @classmethod
    def try_exclusive(cls, path: Path) -> FileLock | None:
        """Return an exclusive lock, or None if the file is locked or missing."""
        with contextlib.suppress(BlockingIOError, FileNotFoundError):
            return cls(_locked(path, os.O_RDWR, fcntl.LOCK_EX | fcntl.LOCK_NB))
        return None

    @classmethod
    def try_shared(cls, path: Path) -> FileLock | None:
        """Return a shared lock, or None if the file is exclusively locked or missing.

        It may be read-only.
        """
        with contextlib.suppress(BlockingIOError, FileNotFoundError):
            return cls(_locked(path, os.O_RDONLY, fcntl.LOCK_SH | fcntl.LOCK_NB))
        return None

    def __enter__(self) -> FileLock:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()


def _locked(path: Path, access: int, mode: int) -> int:
    while True:
        descriptor = os.open(path, access | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, mode)
            if _is_at(path, descriptor):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _is_at(path: Path, descriptor: int) -> bool:
    """Return true if `path` still is the locked file. The last holder may have deleted it."""
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    return False
