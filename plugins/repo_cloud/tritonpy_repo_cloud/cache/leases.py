"""Who uses which blobs: each server has a folder that is locked while it lives, with a lease for each model folder that it was given."""

from __future__ import annotations

import errno
import itertools
import os
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path

from tritonpy_repo_cloud.cache.blobs import Blobs
from tritonpy_repo_cloud.cache.file_lock import try_lock
from tritonpy_repo_cloud.cache.folder import CacheFolder, remove_tree

_NO_LINKS = {errno.EPERM, errno.EXDEV, errno.EMLINK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EACCES}
_LIST = ".blobs"  # no model is called so: their names begin with no dot


class Lease:
    """Blobs that stay while it lives, and the folder that shows them as the files of a model."""

    def __init__(self, folder: Path, blobs: Blobs) -> None:
        self.folder = folder
        self._blobs = blobs
        folder.mkdir()

    def hold(self, digest: str) -> None:
        """Keep this blob, which is there now; under the cache's lock."""
        with (self.folder / _LIST).open("a", encoding="ascii") as file:
            file.write(f"{digest}\n")
        self._blobs.use(digest)

    def show(self, name: str, files: Mapping[str, str]) -> Path:
        """Return a read-only folder called `name` with `files`: digests by relative path, an empty one for an empty folder.

        Each is a hard link to its blob, a symbolic one where the file system has no others. Raises OSError.
        """
        root = self.folder / name
        root.mkdir()
        for path, digest in files.items():
            target = root / path
            if digest:
                target.parent.mkdir(parents=True, exist_ok=True)
                _link(self._blobs.path(digest), target)
            else:
                target.mkdir(parents=True, exist_ok=True)
        for current, _, _ in os.walk(root, topdown=False):
            os.chmod(current, 0o555)  # noqa: S103
        return root

    def end(self) -> None:
        """Let go of the blobs, and remove the folder."""
        remove_tree(self.folder)


class Leases:
    """Those of this server, and a look at those of all."""

    def __init__(self, folder: CacheFolder, blobs: Blobs) -> None:
        self._folder = folder
        self._blobs = blobs
        self._own = folder.leases / f"{os.getpid()}-{secrets.token_hex(4)}"
        self._lock: int | None = None
        self._numbers = itertools.count(1)

    def new(self) -> Lease:
        """Return a lease without blobs. Raises OSError."""
        if self._lock is None:
            with self._folder.lock():
                self._begin()
        return Lease(self._own / str(next(self._numbers)), self._blobs)

    def in_use(self) -> set[Path]:
        """Return the blobs that living servers hold, and remove what dead ones left; under the cache's lock."""
        used: set[Path] = set()
        for server in self._folder.leases.glob("*/"):
            if server != self._own and _is_dead(server):
                remove_tree(server)
            else:
                used.update(self._blobs.path(digest) for digest in _listed(server.glob(f"*/{_LIST}")))
        return used

    def close(self) -> None:
        """End all of this server's leases."""
        if self._lock is not None:
            with self._folder.lock():
                remove_tree(self._own)
            os.close(self._lock)
            self._lock = None

    def _begin(self) -> None:
        if self._lock is None:
            self._own.mkdir()
            self._lock = try_lock(self._own / "lock")


def _is_dead(server: Path) -> bool:
    descriptor = try_lock(server / "lock")
    if descriptor is None:
        return False
    os.close(descriptor)
    return True


def _listed(files: Iterable[Path]) -> Iterable[str]:
    for file in files:
        try:
            yield from file.read_text(encoding="ascii").split()
        except FileNotFoundError:  # released while we look
            continue


def _link(blob: Path, target: Path) -> None:
    try:
        os.link(blob, target)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        os.symlink(blob, target)
