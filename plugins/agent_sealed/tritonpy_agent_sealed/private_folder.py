"""Folders that opened models lie in: nobody else's to read, and never left behind for long."""

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
    """A new folder that only this user can enter. Its lock says that somebody still needs it; a server that was killed let go of that."""

    def __init__(self, parent: Path | None) -> None:
        """Make it in `parent`, or where temporary files lie; folders that killed servers left there go. Raises OSError."""
        parent = Path(tempfile.gettempdir()) if parent is None else parent
        _sweep(parent)
        self._outer = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        # It has its name once it is held: whoever finds it in between would take it for that of a killed server.
        held = self._outer / f"{_LOCK}.new"
        self._lock = os.open(held, os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        held.rename(self._outer / _LOCK)
        self.path = self._outer / "model"
        self.path.mkdir(0o700)

    def remove(self) -> None:
        """Delete it; more than once is no mistake."""
        if self._lock >= 0:
            shutil.rmtree(self._outer, ignore_errors=True)
            os.close(self._lock)
            self._lock = -1


def _sweep(parent: Path) -> None:
    for folder in parent.glob(f"{_PREFIX}*"):
        # A folder of another user cannot be opened, one that is just made has no lock yet: both are left alone.
        with suppress(OSError):
            lock = os.open(folder / _LOCK, os.O_RDWR)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)
