"""Files named by the SHA-256 of their content."""

from __future__ import annotations

import logging
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tritonpy_repo_cloud.checksum import file_digests

log = logging.getLogger("tritonpy.repository")


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file that occupies space: its size in bytes and the time of its last use in ns."""

    path: Path
    byte_size: int
    used_ns: int


class Blobs:
    """Read-only files named by their digest.

    Each process verifies a blob's content before its first use: disks fail, and users edit files.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._verified: dict[str, tuple[int, ...]] = {}

    def path(self, digest: str) -> Path:
        """Return the path of the content with this digest, whether it exists or not."""
        return self._folder / digest[:2] / digest

    def has(self, digest: str) -> bool:
        """Return whether the blob exists; `is_intact` checks its content."""
        return self.path(digest).is_file()

    def add(self, file: Path, digest: str) -> None:
        """Move `file`, whose content has this digest, into the cache; hold the cache's lock."""
        path = self.path(digest)
        path.parent.mkdir(exist_ok=True)
        file.chmod(0o444)
        if path.is_dir():  # a foreign folder: `replace` could not overwrite it
            shutil.rmtree(path)
        file.replace(path)
        self._verified[digest] = _file_state(path)

    def touch(self, digest: str) -> None:
        """Record that the blob is used now.

        The access time is set explicitly because not all file systems maintain it.
        """
        path = self.path(digest)
        os.utime(path, ns=(time.time_ns(), path.stat().st_mtime_ns))

    def is_intact(self, digest: str) -> bool:
        """Return whether the content still has its digest.

        It is read once, and again after a change.
        """
        path = self.path(digest)
        try:
            state = _file_state(path)
            if self._verified.get(digest) == state:
                return True
            found = file_digests(path)["sha256"]
        except FileNotFoundError:  # another server noticed the damage first
            return False
        if found != digest:
            log.warning("the cached file %s is damaged, fetching it again", path)
            return False
        self._verified[digest] = state
        return True

    def stored(self) -> Iterator[StoredFile]:
        """Yield all blobs."""
        for path in self._folder.glob("??/*"):
            status = path.stat()
            yield StoredFile(path, status.st_size, status.st_atime_ns)

    def remove(self, digest: str) -> None:
        """Remove the blob; existing links keep the content. Hold the cache's lock."""
        self.path(digest).unlink(missing_ok=True)
        self._verified.pop(digest, None)


def _file_state(path: Path) -> tuple[int, ...]:
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns
