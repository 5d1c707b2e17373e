"""What was whole in the cache, model by model: how a repository goes on when its store is away."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import msgspec

from tritonpy_repo_cloud.cache.folder import CacheFolder, key_of, write_whole
from tritonpy_repo_cloud.remote_file import RemoteFile

_SEEN = "seen"


class Manifests:
    """Those of the repository at `url`. A model that is gone from there is forgotten, one that is only out of reach is not."""

    def __init__(self, folder: CacheFolder, url: str) -> None:
        self._folder = folder.manifests / key_of(url)

    def write(self, name: str, files: list[RemoteFile]) -> None:
        """Note that all of these files of a model are in the cache. Raises OSError."""
        write_whole(self._path(name), msgspec.json.encode(files))

    def read(self, name: str) -> list[RemoteFile] | None:
        """Return what was noted last; None where nothing was, or it is no more to be read."""
        return _read(self._path(name))

    def names(self) -> Iterator[str]:
        """Yield the models that something is noted of."""
        for path in sorted(self._folder.glob("*.json")):
            files = _read(path)
            if files:
                yield files[0].path.partition("/")[0]

    def keep(self, names: set[str]) -> None:
        """Note that the store was read now and has these models alone. Raises OSError."""
        kept = {self._path(name) for name in names}
        for path in self._folder.glob("*.json"):
            if path not in kept:
                path.unlink(missing_ok=True)
        write_whole(self._folder / _SEEN, b"")

    def age_s(self) -> float:
        """Return how long ago the store was last read, in seconds; infinite where it never was."""
        try:
            return max(0.0, time.time() - (self._folder / _SEEN).stat().st_mtime)
        except OSError:
            return float("inf")

    def _path(self, name: str) -> Path:
        readable = quote(name, safe="")
        return self._folder / f"{readable if len(readable) < 200 else key_of(name)}.json"


def _read(path: Path) -> list[RemoteFile] | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=list[RemoteFile])
    except (OSError, msgspec.MsgspecError):
        return None
