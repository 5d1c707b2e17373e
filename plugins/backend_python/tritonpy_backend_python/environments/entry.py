"""One place of the cache: where an environment is built, and used where it stands.

Virtual environments and what `conda-unpack` has adjusted hold their own path: neither can be built elsewhere and renamed. So each is
built where it stays, under a lock, and a stamp beside it says that it is finished:

    NAME/        the environment
    NAME.lock    locked by the one that builds or removes it, for as long as that takes
    NAME.json    the stamp: exists when it is finished, its time is that of the last use, all who use it share a lock on it

A folder without a stamp was left by a process that died. The two locks are two files because a use lasts as long as a model:
whoever waits for a build must not wait for those who use it already.
"""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

from tritonpy_backend_python.environments.file_lock import FileLock
from tritonpy_backend_python.environments.lease import Lease

SECONDS_PER_DAY = 86400.0


class Entry:
    """The place `name` in `cache`; whoever builds, clears or removes it holds `lock`."""

    def __init__(self, cache: Path, name: str) -> None:
        self.name = name
        self.folder = cache / name
        self.lock = cache / f"{name}.lock"
        self._stamp = cache / f"{name}.json"

    def is_complete(self) -> bool:
        """Say whether the environment is finished."""
        return self._stamp.exists() and self.folder.is_dir()

    def idle_days(self) -> float:
        """Return the days since its last use began or ended."""
        return (time.time() - self._stamp.stat().st_mtime) / SECONDS_PER_DAY

    def borrow(self) -> Lease | None:
        """Return the right to use the environment, or None where it is not finished, or is being removed."""
        lock = FileLock.try_shared(self._stamp)
        if lock is None:
            return None
        if self.is_complete():
            return Lease(self.folder, self._stamp, lock)
        lock.release()
        return None

    def seize(self) -> FileLock | None:
        """Return what keeps others from using the environment, or None where somebody uses it."""
        return FileLock.try_exclusive(self._stamp)

    def complete(self, source: str) -> None:
        """Declare it finished; `source` is for people who look into the cache."""
        self._stamp.write_text(json.dumps({"source": source, "folder": str(self.folder)}), encoding="utf-8")

    def clear(self) -> None:
        """Remove the environment; the stamp goes first, so that half of one never looks finished."""
        self._stamp.unlink(missing_ok=True)
        if self.folder.exists():
            shutil.rmtree(self.folder)

    def remove(self) -> None:
        """Remove everything; the lock goes last."""
        self.clear()
        self.lock.unlink(missing_ok=True)
