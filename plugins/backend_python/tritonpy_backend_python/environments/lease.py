"""The right to use an environment of the cache, for a while."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from tritonpy_backend_python.environments.file_lock import FileLock


class Lease:
    """A finished environment at `folder` that nobody removes until `release`, or until this object is gone."""

    def __init__(self, folder: Path, stamp: Path, lock: FileLock) -> None:
        self.folder = folder
        self._stamp = stamp
        self._lock = lock
        self._touch()

    def release(self) -> None:
        """End the use; its moment counts for the removal of unused environments."""
        if self._lock.release.alive:
            self._touch()
            self._lock.release()

    def _touch(self) -> None:
        with contextlib.suppress(OSError):  # a cache that can only be read is never cleaned either
            os.utime(self._stamp)
