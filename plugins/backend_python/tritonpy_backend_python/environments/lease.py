"""Leases of cached environments."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from tritonpy_backend_python.environments.file_lock import FileLock


class EnvironmentLease:
    """A complete environment at `folder`, kept until `release` or the end of this object."""

    def __init__(self, folder: Path, stamp: Path, lock: FileLock) -> None:
        self.folder = folder
        self._stamp = stamp
        self._lock = lock
        self._touch()

    def release(self) -> None:
        """End the use, and record the time: the environment counts as unused from now on."""
        if self._lock.release.alive:
            self._touch()
            self._lock.release()

    def _touch(self) -> None:
        with contextlib.suppress(OSError):  # a read-only cache needs no time: nothing is removed
            os.utime(self._stamp)
