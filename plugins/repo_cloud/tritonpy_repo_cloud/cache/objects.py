"""Digests of objects, that is, of files in a store in one version."""

from __future__ import annotations

import re
from pathlib import Path

from tritonpy_repo_cloud.cache.blobs import Blobs
from tritonpy_repo_cloud.cache.folder import write_atomically

_DIGEST = re.compile(rb"[0-9a-f]{64}")


class Objects:
    """Digests by object key; changes need the cache's lock."""

    def __init__(self, folder: Path, blobs: Blobs) -> None:
        self._folder = folder
        self._blobs = blobs

    def digest(self, key: str) -> str | None:
        """Return the digest of the object's content, or None if the content is not in the cache."""
        return self._read_digest(self._path(key))

    def record(self, key: str, digest: str) -> None:
        """Record the digest of the object's content; raise `OSError` on failure."""
        write_atomically(self._path(key), digest.encode())

    def remove_dangling(self) -> None:
        """Forget objects whose content is not in the cache."""
        for path in self._folder.glob("??/*"):
            if self._read_digest(path) is None:
                path.unlink()

    def _read_digest(self, path: Path) -> str | None:
        """Return the digest in a file if it is valid and its content exists.

        After a crash the file may contain anything.
        """
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
