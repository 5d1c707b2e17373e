"""Removes environments that nobody uses any more."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

from tritonpy_backend_python.environments.entry import SECONDS_PER_DAY, Entry
from tritonpy_backend_python.environments.file_lock import FileLock


def prune(folder: Path, older_than_days: float) -> list[str]:
    """Remove from the cache in `folder` what was last used more than that many days ago; return the names.

    What any live process uses or builds stays, however old; what a dead process left unfinished goes. Safe at any
    time, beside any number of servers.
    """
    names = sorted(path.stem for path in folder.glob("*.lock"))
    _forget_digests(folder / "digests", older_than_days)
    return [name for name in names if _prune_one(Entry(folder, name), older_than_days)]


def _prune_one(entry: Entry, older_than_days: float) -> bool:
    lock = FileLock.try_exclusive(entry.lock)
    if lock is None:
        return False
    with lock:
        if entry.is_complete():
            return _prune_finished(entry, older_than_days)
        entry.remove()
        return True


def _prune_finished(entry: Entry, older_than_days: float) -> bool:
    use = entry.seize()
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
        with contextlib.suppress(FileNotFoundError):  # another process forgets it at the same time
            if path.stat().st_mtime < oldest:
                path.unlink()
