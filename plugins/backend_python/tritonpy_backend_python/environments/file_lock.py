"""Locks between processes and threads, as files that whoever holds them alone may delete."""

from __future__ import annotations

import contextlib
import fcntl
import os
import weakref
from collections.abc import Callable
from pathlib import Path
from types import TracebackType


class FileLock:
    """A held lock; it is free again after `release`, at the end of a `with`, or when the process is gone.

    The kernel keeps it for an open file, not for a process: two threads of one process exclude each other too, and a
    child that inherits `descriptor` keeps it as long as it lives.
    """

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.release = weakref.finalize(self, os.close, descriptor)

    @classmethod
    def exclusive(cls, path: Path, waiting: Callable[[], None]) -> FileLock:
        """Return the lock once nobody else holds `path`, which is created; calls `waiting` where somebody does."""
        try:
            return cls(_locked(path, os.O_RDWR | os.O_CREAT, fcntl.LOCK_EX | fcntl.LOCK_NB))
        except BlockingIOError:
            waiting()
            return cls(_locked(path, os.O_RDWR | os.O_CREAT, fcntl.LOCK_EX))

    @classmethod
    def try_exclusive(cls, path: Path) -> FileLock | None:
        """Return the lock, or None where somebody holds it now or there is no such file."""
        with contextlib.suppress(BlockingIOError, FileNotFoundError):
            return cls(_locked(path, os.O_RDWR, fcntl.LOCK_EX | fcntl.LOCK_NB))
        return None

    @classmethod
    def try_shared(cls, path: Path) -> FileLock | None:
        """Return the lock, or None where somebody holds it alone or there is no such file, which may be read-only."""
        with contextlib.suppress(BlockingIOError, FileNotFoundError):
            return cls(_locked(path, os.O_RDONLY, fcntl.LOCK_SH | fcntl.LOCK_NB))
        return None

    def __enter__(self) -> FileLock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
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
    """Say whether the file that was locked is still the one of that name: its last holder may have deleted it."""
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    return False
