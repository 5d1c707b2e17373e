"""Private folders for unsealed models, removed after a crash by the next load."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

_PREFIX = "tritonpy-sealed-"
_LOCK = ".lock"


class PrivateFolder:
    """A new folder that only this user can enter.

    A file lock marks it as used. A killed server releases the lock.
    """

    def __init__(self, parent: Path | None) -> None:
        """Create it in `parent`, or in the temporary directory. Remove abandoned folders there.

        Raises `OSError`.
        """
        parent = Path(tempfile.gettempdir()) if parent is None else parent
        _remove_abandoned(parent)
        self._outer = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        # Rename the lock file only after locking it, or another process would take the folder for
        # abandoned.
        held = self._outer / f"{_LOCK}.new"
        self._lock = os.open(held, os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        held.rename(self._outer / _LOCK)
        self.path = self._outer / "model"
        self.path.mkdir(0o700)

    def remove(self) -> None:
        """Delete the folder. May be called more than once."""
        if self._lock >= 0:
            shutil.rmtree(self._outer, ignore_errors=True)
            os.close(self._lock)
            self._lock = -1


def _remove_abandoned(parent: Path) -> None:
    for folder in parent.glob(f"{_PREFIX}*"):
        # Skip folders of other users (cannot be opened) and new ones (no lock file yet).
        with suppress(OSError):
            lock = os.open(folder / _LOCK, os.O_RDWR)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)
