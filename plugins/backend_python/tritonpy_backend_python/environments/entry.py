"""An entry of the cache: an environment, its lock and its stamp.

Virtual environments, and environments adjusted by `conda-unpack`, contain their own path: they
cannot be built in one place and moved to another. So each is built in its final place under a lock,
and a stamp file marks it as complete:

    NAME/        the environment
    NAME.lock    locked by a process that builds or removes the environment
    NAME.json    the stamp: its time is that of the last use, and all users share a lock on it

A folder without a stamp was left by a process that died. Two lock files are necessary because a use
lasts as long as a model: waiting for a build must not mean waiting for users.
"""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

from tritonpy_backend_python.environments.file_lock import FileLock
from tritonpy_backend_python.environments.lease import EnvironmentLease

SECONDS_PER_DAY = 86400.0


class EnvironmentEntry:
    """The entry `name` in `cache`. Hold `lock` to build, clear or remove it."""

    def __init__(self, cache: Path, name: str) -> None:
        self.name = name
        self.folder = cache / name
        self.lock = cache / f"{name}.lock"
        self._stamp = cache / f"{name}.json"

    def is_complete(self) -> bool:
        """Return true if the environment is complete."""
        return self._stamp.exists() and self.folder.is_dir()

    def idle_days(self) -> float:
        """Return the number of days since a use last began or ended."""
        return (time.time() - self._stamp.stat().st_mtime) / SECONDS_PER_DAY

    def acquire(self) -> EnvironmentLease | None:
        """Return a lease, or None if the environment is incomplete or being removed."""
        lock = FileLock.try_shared(self._stamp)
        if lock is None:
            return None
        if self.is_complete():
            return EnvironmentLease(self.folder, self._stamp, lock)
        lock.release()
        return None

    def lock_exclusively(self) -> FileLock | None:
        """Return an exclusive lock against uses, or None if the environment is in use."""
        return FileLock.try_exclusive(self._stamp)

    def complete(self, source: str) -> None:
        """Mark the environment as complete. `source` describes its origin."""
        self._stamp.write_text(
            json.dumps({"source": source, "folder": str(self.folder)}), encoding="utf-8"
        )

    def clear(self) -> None:
        """Remove the environment. The stamp goes first, so a partial one never looks complete."""
        self._stamp.unlink(missing_ok=True)
        if self.folder.exists():
            shutil.rmtree(self.folder)

    def remove(self) -> None:
        """Remove the environment, its stamp and finally its lock."""
        self.clear()
        self.lock.unlink(missing_ok=True)
