"""Manifests of fully cached models, used when a repository's store is unreachable."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import msgspec

from tritonpy_repo_cloud.cache.folder import CacheFolder, hash_key, write_atomically
from tritonpy_repo_cloud.remote_file import RemoteFile

_SEEN = "seen"


class Manifests:
    """Manifests of the repository at `url`.

    A model that was removed from the store is forgotten; one that is unreachable is not.
    """

    def __init__(self, folder: CacheFolder, url: str) -> None:
        self._folder = folder.manifests / hash_key(url)

    def write(self, name: str, files: list[RemoteFile]) -> None:
        """Record that all `files` of a model are in the cache; raise `OSError` on failure."""
        write_atomically(self._path(name), msgspec.json.encode(files))

    def read(self, name: str) -> list[RemoteFile] | None:
        """Return the recorded files of a model, or None if they are missing or unreadable."""
        return _read(self._path(name))

    def names(self) -> Iterator[str]:
        """Yield the names of the recorded models."""
        for path in sorted(self._folder.glob("*.json")):
            files = _read(path)
            if files:
                yield files[0].path.partition("/")[0]

    def retain(self, names: set[str]) -> None:
        """Record that the store was read now and contains only the models `names`.

        Raises `OSError` on failure.
        """
        kept = {self._path(name) for name in names}
        for path in self._folder.glob("*.json"):
            if path not in kept:
                path.unlink(missing_ok=True)
        write_atomically(self._folder / _SEEN, b"")

    def age_s(self) -> float:
        """Return the seconds since the store was last read, or infinity if it never was."""
        try:
            return max(0.0, time.time() - (self._folder / _SEEN).stat().st_mtime)
        except OSError:
            return float("inf")

    def _path(self, name: str) -> Path:
        readable = quote(name, safe="")
        return self._folder / f"{readable if len(readable) < 200 else hash_key(name)}.json"


def _read(path: Path) -> list[RemoteFile] | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=list[RemoteFile])
    except (OSError, msgspec.MsgspecError):
        return None
