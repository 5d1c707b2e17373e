"""The cache of built environments, shared by all servers of a user."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path

from tritonpy import Internal
from tritonpy.repository import make_private_folder
from tritonpy_backend_python.environments.digests import Digests
from tritonpy_backend_python.environments.entry import EnvironmentEntry
from tritonpy_backend_python.environments.file_lock import FileLock
from tritonpy_backend_python.environments.lease import EnvironmentLease
from tritonpy_backend_python.environments.pruning import prune

UNUSED_DAYS = 30
Build = Callable[[Path, int], None]


class EnvironmentCache:
    """Builds each environment once, even for concurrent threads and processes."""

    def __init__(self, folder: Path, *, configured: bool = True) -> None:
        """Describe the cache in `folder`, which the first build creates for this user only.

        `configured` is false for the user's default cache folder.
        """
        self.folder = folder
        self._configured = configured
        self.digests = Digests(folder / "digests")

    def obtain(
        self, name: str, source: str, build: Build, log: logging.LoggerAdapter[logging.Logger]
    ) -> EnvironmentLease:
        """Return a lease of the environment `name`. Build it if necessary.

        `build` gets the empty folder and the descriptor of its lock. Every process that `build`
        starts must inherit the descriptor, so that the folder stays locked while one of them writes
        there, even if this process is killed. If `build` raises an exception, the environment is
        removed. Raises `Internal` if the cache cannot be created or other users may write to it.
        """
        self._create(log)
        entry = EnvironmentEntry(self.folder, name)

        def waiting() -> None:
            log.info("waiting for another load, which prepares the environment of %s", source)

        while (lease := entry.acquire()) is None:
            with FileLock.exclusive(entry.lock, waiting) as lock:
                if not entry.is_complete():
                    self._clean(log)
                    self._build(entry, source, build, lock.descriptor)
        return lease

    def _create(self, log: logging.LoggerAdapter[logging.Logger]) -> None:
        try:
            warning = make_private_folder(self.folder, configured=self._configured)
        except OSError as error:
            raise Internal(
                f"the folder of Python environments '{self.folder}' cannot be created: "
                f"{error.strerror}; "
                "choose another with the backend's option environments-dir"
            ) from error
        if warning:
            log.warning(
                "the folder of Python environments '%s' is not safe: %s", self.folder, warning
            )

    def _build(self, entry: EnvironmentEntry, source: str, build: Build, lock: int) -> None:
        entry.clear()
        try:
            entry.folder.mkdir(mode=0o700)
            build(entry.folder, lock)
            entry.complete(source)
        except BaseException:
            entry.remove()
            raise

    def _clean(self, log: logging.LoggerAdapter[logging.Logger]) -> None:
        """Remove unused environments before the cache grows. A failure only logs a warning."""
        try:
            removed = prune(self.folder, UNUSED_DAYS)
        except OSError as error:
            log.warning("unused Python environments cannot be removed: %s", error)
        else:
            if removed:
                log.info("removed unused Python environments: %s", ", ".join(removed))


def cache_folder(configured: str) -> Path:
    """Return the configured folder, or the default folder in the user's cache."""
    if configured:
        return Path(configured).expanduser().absolute()
    home = os.environ.get("XDG_CACHE_HOME", "")
    return (
        Path(home if os.path.isabs(home) else os.path.expanduser("~/.cache")).absolute()
        / "tritonpy"
        / "environments"
    )
