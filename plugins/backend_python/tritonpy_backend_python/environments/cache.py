"""The folder of environments that were built here, shared by all servers of a user."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path

from tritonpy import Internal, make_private_folder
from tritonpy_backend_python.environments.digests import Digests
from tritonpy_backend_python.environments.entry import Entry
from tritonpy_backend_python.environments.file_lock import FileLock
from tritonpy_backend_python.environments.lease import Lease
from tritonpy_backend_python.environments.pruning import prune

UNUSED_DAYS = 30
Build = Callable[[Path, int], None]


class EnvironmentCache:
    """Builds each environment once, whichever threads and processes ask for it at the same time."""

    def __init__(self, folder: Path, *, configured: bool = True) -> None:
        """Describe the cache in `folder`, which is created, for this user alone, when something is built.

        It is `configured` unless it is the user's own default.
        """
        self.folder = folder
        self._configured = configured
        self.digests = Digests(folder / "digests")

    def obtain(self, name: str, source: str, build: Build, log: logging.LoggerAdapter[logging.Logger]) -> Lease:
        """Return the right to use the environment `name`, built if need be.

        `build` gets its empty folder and the descriptor of a lock that every process it starts must inherit: so the folder
        is nobody else's as long as one of them writes there, even if this process is killed. What it raises is raised here,
        and nothing of the environment stays. Raises Internal where the cache cannot be created, or is not this user's alone.
        """
        self._create(log)
        entry = Entry(self.folder, name)

        def waiting() -> None:
            log.info("waiting for another load that prepares the environment of %s", source)

        while (lease := entry.borrow()) is None:
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
                f"the folder for Python environments '{self.folder}' cannot be created: {error.strerror}; "
                "choose another with the backend's option environments-dir"
            ) from error
        if warning:
            log.warning("the folder for Python environments '%s' is not safe: %s", self.folder, warning)

    def _build(self, entry: Entry, source: str, build: Build, lock: int) -> None:
        entry.clear()
        try:
            entry.folder.mkdir(mode=0o700)
            build(entry.folder, lock)
            entry.complete(source)
        except BaseException:
            entry.remove()
            raise

    def _clean(self, log: logging.LoggerAdapter[logging.Logger]) -> None:
        """Remove what is unused, now that the cache grows; a failure is no reason not to serve."""
        try:
            removed = prune(self.folder, UNUSED_DAYS)
        except OSError as error:
            log.warning("unused Python environments cannot be removed: %s", error)
        else:
            if removed:
                log.info("removed unused Python environments: %s", ", ".join(removed))


def cache_folder(configured: str) -> Path:
    """Return the configured folder, or the user's cache folder where none is configured."""
    if configured:
        return Path(configured).expanduser().absolute()
    home = os.environ.get("XDG_CACHE_HOME", "")
    return (
        Path(home if os.path.isabs(home) else os.path.expanduser("~/.cache")).absolute() / "tritonpy" / "environments"
    )
