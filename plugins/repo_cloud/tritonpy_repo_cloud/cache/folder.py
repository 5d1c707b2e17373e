"""The folder of the cache, and what lies where in it."""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
from contextlib import AbstractContextManager
from pathlib import Path

from tritonpy import StartupError, make_private_folder
from tritonpy_repo_cloud.cache.file_lock import held

log = logging.getLogger("tritonpy.repository")


class CacheFolder:
    """`blobs/` by content, `objects/` what is a copy of what, `manifests/` models by repository, `partial/` what is being fetched, `leases/` who uses what.

    Servers share it: whatever one of them changes it changes in one step, and everything but reading under `lock`.
    """

    def __init__(self, root: Path, *, configured: bool = True) -> None:
        """Describe the cache in `root`, which is `configured` unless it is the user's own default."""
        self.root = root
        self._configured = configured
        self.blobs = root / "blobs"
        self.objects = root / "objects"
        self.manifests = root / "manifests"
        self.partial = root / "partial"
        self.leases = root / "leases"

    def make(self) -> None:
        """Make the folders that are missing. Raises StartupError where that is not possible, and where others may write into the folder."""
        try:
            warning = make_private_folder(self.root, configured=self._configured)
            for folder in (self.blobs, self.objects, self.manifests, self.partial, self.leases):
                folder.mkdir(exist_ok=True)
        except OSError as error:
            raise StartupError(
                f"the cache of model repositories cannot be made in {self.root}: {error.strerror}; "
                "choose another folder with the option cache_directory"
            ) from error
        if warning:
            log.warning("the cache of model repositories in %s is not safe: %s", self.root, warning)

    def lock(self) -> AbstractContextManager[None]:
        """Hold the lock of the whole cache: no blob is removed meanwhile. Never waits for another lock."""
        return held(self.root / "lock")


def key_of(*parts: str) -> str:
    """Return a name for a file that stands for `parts`, whatever is in them."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()


def write_whole(path: Path, content: bytes) -> None:
    """Write a small file so that readers see the old content or the new."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.{os.getpid()}-{os.urandom(4).hex()}.new")
    try:
        beside.write_bytes(content)
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def remove_tree(folder: Path) -> None:
    """Remove a folder and what is in it, though folders in it are read-only."""
    for current, _, _ in os.walk(folder):
        os.chmod(current, 0o700)
    shutil.rmtree(folder, ignore_errors=True)
