"""Which content an object has: a file of a store in one version."""

from __future__ import annotations

from pathlib import Path

from tritonpy_repo_cloud.cache.blobs import Blobs
from tritonpy_repo_cloud.cache.folder import write_whole


class Objects:
    """Digests by the keys of objects. Changed under the cache's lock."""

    def __init__(self, folder: Path, blobs: Blobs) -> None:
        self._folder = folder
        self._blobs = blobs

    def digest(self, key: str) -> str | None:
        """Return the digest of the object's content; None where its content is not in the cache."""
        try:
            digest = self._path(key).read_text(encoding="ascii")
        except FileNotFoundError:
            return None
        return digest if self._blobs.has(digest) else None

    def note(self, key: str, digest: str) -> None:
        """Note the content of the object. Raises OSError."""
        write_whole(self._path(key), digest.encode())

    def forget_lost(self) -> None:
        """Forget the objects whose content is not there any more."""
        for path in self._folder.glob("??/*"):
            if not self._blobs.has(path.read_text(encoding="ascii")):
                path.unlink()

    def _path(self, key: str) -> Path:
        return self._folder / key[:2] / key
