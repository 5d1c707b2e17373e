"""Which content an object has: a file of a store in one version."""

from __future__ import annotations

import re
from pathlib import Path

from tritonpy_repo_cloud.cache.blobs import Blobs
from tritonpy_repo_cloud.cache.folder import write_whole

_DIGEST = re.compile(rb"[0-9a-f]{64}")


class Objects:
    """Digests by the keys of objects. Changed under the cache's lock."""

    def __init__(self, folder: Path, blobs: Blobs) -> None:
        self._folder = folder
        self._blobs = blobs

    def digest(self, key: str) -> str | None:
        """Return the digest of the object's content; None where its content is not in the cache."""
        return self._noted(self._path(key))

    def note(self, key: str, digest: str) -> None:
        """Note the content of the object. Raises OSError."""
        write_whole(self._path(key), digest.encode())

    def forget_lost(self) -> None:
        """Forget the objects whose content is not there any more."""
        for path in self._folder.glob("??/*"):
            if self._noted(path) is None:
                path.unlink()

    def _noted(self, path: Path) -> str | None:
        """Return the digest that a note gives, if that is one and its content is there: a crash may leave anything in a note."""
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        if not _DIGEST.fullmatch(content):
            return None
        digest = content.decode("ascii")
        return digest if self._blobs.has(digest) else None

    def _path(self, key: str) -> Path:
        return self._folder / key[:2] / key
