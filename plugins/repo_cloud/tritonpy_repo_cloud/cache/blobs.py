"""Files by the SHA-256 of their content."""

from __future__ import annotations

import logging
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tritonpy_repo_cloud.checksum import digests

log = logging.getLogger("tritonpy.repository")


@dataclass(frozen=True, slots=True)
class Stored:
    """Something that takes up room: its size in bytes and when it was last used, in ns."""

    path: Path
    byte_size: int
    used_ns: int


class Blobs:
    """Read-only files. A blob that this process has not yet read is read before it is used: disks forget, and people edit."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._trusted: dict[str, tuple[int, ...]] = {}

    def path(self, digest: str) -> Path:
        """Return where the content with this digest is or would be."""
        return self._folder / digest[:2] / digest

    def has(self, digest: str) -> bool:
        """Say whether it is there; whether it is sound, `sound` says."""
        return self.path(digest).is_file()

    def add(self, file: Path, digest: str) -> None:
        """Move `file`, whose content has this digest, in; under the cache's lock."""
        path = self.path(digest)
        path.parent.mkdir(exist_ok=True)
        file.chmod(0o444)
        if path.is_dir():  # whoever made it: nothing can be there in its place
            shutil.rmtree(path)
        file.replace(path)
        self._trusted[digest] = _state(path)

    def use(self, digest: str) -> None:
        """Note that it is used now. The time of access is written by hand: file systems do not all keep it."""
        path = self.path(digest)
        os.utime(path, ns=(time.time_ns(), path.stat().st_mtime_ns))

    def sound(self, digest: str) -> bool:
        """Say whether the content still has its digest; it is read once, and again when the file changed."""
        path = self.path(digest)
        try:
            state = _state(path)
            if self._trusted.get(digest) == state:
                return True
            found = digests(path)["sha256"]
        except FileNotFoundError:  # another server saw the damage first
            return False
        if found != digest:
            log.warning("the cached file %s is damaged, it is fetched again", path)
            return False
        self._trusted[digest] = state
        return True

    def stored(self) -> Iterator[Stored]:
        """Yield all of them."""
        for path in self._folder.glob("??/*"):
            status = path.stat()
            yield Stored(path, status.st_size, status.st_atime_ns)

    def remove(self, digest: str) -> None:
        """Remove it; who has a link to it keeps the content. Under the cache's lock."""
        self.path(digest).unlink(missing_ok=True)
        self._trusted.pop(digest, None)


def _state(path: Path) -> tuple[int, ...]:
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns
