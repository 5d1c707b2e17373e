"""File locks between threads and processes, released when their holder ends."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_RIGHTS = 0o600


def try_lock(path: Path) -> int | None:
    """Return a descriptor that holds the lock until it is closed, or None if the lock is taken."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _RIGHTS)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


@contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    """Hold the lock for a short operation; waiting for it cannot be interrupted."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _RIGHTS)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
