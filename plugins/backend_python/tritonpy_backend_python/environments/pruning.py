"""Removal of unused environments."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

from tritonpy_backend_python.environments.entry import SECONDS_PER_DAY, EnvironmentEntry
from tritonpy_backend_python.environments.file_lock import FileLock


def prune(folder: Path, older_than_days: float) -> list[str]:
    """Remove environments from the cache in `folder` that were unused for that many days.

    Return their names. Environments that a process uses or builds are kept. Incomplete ones without
    a process are removed. Can run at any time, concurrently with any number of servers.
    """
    names = sorted(path.stem for path in folder.glob("*.lock"))
    _forget_digests(folder / "digests", older_than_days)
    return [name for name in names if _prune_one(EnvironmentEntry(folder, name), older_than_days)]


def _prune_one(entry: EnvironmentEntry, older_than_days: float) -> bool:
    lock = FileLock.try_exclusive(entry.lock)
    if lock is None:
        return False
    with lock:
        if entry.is_complete():
            return _prune_complete(entry, older_than_days)
        entry.remove()
        return True


def _prune_complete(entry: EnvironmentEntry, older_than_days: float) -> bool:
    use = entry.lock_exclusively()
    if use is None:
        return False
    with use:
        if entry.idle_days() <= older_than_days:
            return False
        entry.remove()
        return True


def _forget_digests(folder: Path, older_than_days: float) -> None:
    oldest = time.time() - older_than_days * SECONDS_PER_DAY
    for path in folder.glob("*"):
        # Another process may remove it at the same time.
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_mtime < oldest:
                path.unlink()
