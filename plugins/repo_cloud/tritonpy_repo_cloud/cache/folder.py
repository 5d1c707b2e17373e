"""Folder layout of the cache."""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
from contextlib import AbstractContextManager
from pathlib import Path

from tritonpy import StartupError
from tritonpy.repository import make_private_folder
from tritonpy_repo_cloud.cache.file_lock import hold_lock

log = logging.getLogger("tritonpy.repository")


class CacheFolder:
    """Folders of the cache, shared by all servers.

    `blobs/` holds content by digest, `objects/` the digests of store objects, `manifests/` models
    by repository, `partial/` incomplete downloads, and `leases/` the blobs in use. Servers change
    files atomically, and do everything except reading under `lock`.
    """

    def __init__(self, root: Path, *, configured: bool = True) -> None:
        """Describe the cache in `root`; `configured` is False for the user's default folder."""
        self.root = root
        self._configured = configured
        self.blobs = root / "blobs"
        self.objects = root / "objects"
        self.manifests = root / "manifests"
        self.partial = root / "partial"
        self.leases = root / "leases"

    def make(self) -> None:
        """Create missing folders.

        Raises `StartupError` if that is not possible, or if other users may write to the folder.
        """
        try:
            warning = make_private_folder(self.root, configured=self._configured)
            for folder in (self.blobs, self.objects, self.manifests, self.partial, self.leases):
                folder.mkdir(exist_ok=True)
        except OSError as error:
            raise StartupError(
                f"the cache of model repositories cannot be created in {self.root}: "
                f"{error.strerror}; "
                "set another folder with the option cache_directory"
            ) from error
        if warning:
            log.warning("the cache of model repositories in %s is not safe: %s", self.root, warning)

    def lock(self) -> AbstractContextManager[None]:
        """Return a lock of the whole cache; no blob is removed while it is held.

        Code that holds it must not wait for another lock.
        """
        return hold_lock(self.root / "lock")


def hash_key(*parts: str) -> str:
    """Return a file name for `parts`, which may contain any characters."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()


def write_atomically(path: Path, content: bytes) -> None:
    """Write a small file so that readers see either the old or the new content."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}-{os.urandom(4).hex()}.new")
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def remove_tree(folder: Path) -> None:
    """Remove a folder with its contents, including read-only folders."""
    for current, _, _ in os.walk(folder):
        os.chmod(current, 0o700)
    shutil.rmtree(folder, ignore_errors=True)
