"""Leases on blobs: each server has a locked folder with one lease per model folder in use."""

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
_LIST = ".blobs"  # cannot clash with a model, because model names do not begin with a dot


class CacheLease:
    """Keeps blobs in the cache, and links them into a model folder."""

    def __init__(self, folder: Path, blobs: Blobs) -> None:
        self.folder = folder
        self._blobs = blobs
        folder.mkdir()

    def hold(self, digest: str) -> None:
        """Keep the existing blob; hold the cache's lock."""
        with (self.folder / _LIST).open("a", encoding="ascii") as file:
            file.write(f"{digest}\n")
        self._blobs.touch(digest)

    def link_files(self, name: str, files: Mapping[str, str]) -> Path:
        """Return a read-only folder `name` with `files`, which maps relative paths to digests.

        An empty digest means an empty folder. Files are hard links to blobs, or symbolic links if
        the file system does not support hard links. Raises `OSError`.
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

    def release(self) -> None:
        """Release the blobs and remove the folder."""
        remove_tree(self.folder)


class Leases:
    """Leases of this server, and the blobs in use by all servers."""

    def __init__(self, folder: CacheFolder, blobs: Blobs) -> None:
        self._folder = folder
        self._blobs = blobs
        self._own = folder.leases / f"{os.getpid()}-{secrets.token_hex(4)}"
        self._lock: int | None = None
        self._numbers = itertools.count(1)

    def create(self) -> CacheLease:
        """Return a lease without blobs; raise `OSError` on failure."""
        if self._lock is None:
            with self._folder.lock():
                self._lock_own_folder()
        return CacheLease(self._own / str(next(self._numbers)), self._blobs)

    def in_use(self) -> set[Path]:
        """Return the blobs in use by running servers, and remove leases of ended ones.

        Hold the cache's lock.
        """
        used: set[Path] = set()
        for server in self._folder.leases.glob("*/"):
            if server != self._own and _is_dead(server):
                remove_tree(server)
            else:
                used.update(
                    self._blobs.path(digest) for digest in _read_lists(server.glob(f"*/{_LIST}"))
                )
        return used

    def close(self) -> None:
        """Release all leases of this server."""
        if self._lock is not None:
            with self._folder.lock():
                remove_tree(self._own)
            os.close(self._lock)
            self._lock = None

    def _lock_own_folder(self) -> None:
        if self._lock is None:
            self._own.mkdir()
            self._lock = try_lock(self._own / "lock")


def _is_dead(server: Path) -> bool:
    descriptor = try_lock(server / "lock")
    if descriptor is None:
        return False
    os.close(descriptor)
    return True


def _read_lists(files: Iterable[Path]) -> Iterable[str]:
    for file in files:
        try:
            yield from file.read_text(encoding="ascii").split()
        except FileNotFoundError:  # released in the meantime
            continue


def _link(blob: Path, target: Path) -> None:
    try:
        os.link(blob, target)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        os.symlink(blob, target)
