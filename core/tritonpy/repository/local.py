"""Local model repositories: `<repository>/<model>/[config.pbtxt]/<version>/<files>`."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from tritonpy.api.repository import ModelListing, Repository, RepositoryContext
from tritonpy.errors import Unavailable
from tritonpy.repository.folder_watch import FolderWatch


class LocalRepository(Repository):
    """A folder with one folder per model. Names that start with a dot are ignored."""

    def __init__(self, options: Any, context: RepositoryContext) -> None:
        super().__init__(options, context)
        self._watch: FolderWatch | None = None

    @property
    def root(self) -> Path:
        """The folder of the repository."""
        url = self.context.url
        return Path(unquote(urlparse(url).path) if url.startswith("file:") else url)

    def scan(self) -> Mapping[str, ModelListing]:
        return {name: list_model(name, self.root / name) for name in self.names()}

    def find(self, name: str) -> ModelListing | None:
        return list_model(name, self.root / name) if name in self.names() else None

    def names(self) -> Collection[str]:
        try:
            with os.scandir(self.root) as entries:
                return sorted(entry.name for entry in entries if entry.is_dir() and not entry.name.startswith("."))
        except OSError as error:
            raise Unavailable(
                f"model repository '{self.context.url}' cannot be read: {error.strerror} ({self.root})"
            ) from error

    def watch(self, changed: Callable[[], None]) -> None:
        self._watch = FolderWatch.start(self.root, changed)

    def close(self) -> None:
        if self._watch is not None:
            self._watch.stop()


def list_model(name: str, path: Path) -> ModelListing:
    """Return the listing of the model in the folder `path`.

    The fingerprint of a file is its modification time and size. An empty folder is listed with a
    trailing slash, as a version may need no file.
    """
    files = dict(_fingerprints(path, "", frozenset()))
    return ModelListing(name, f"{hash(frozenset(files.items())):x}", files, path)


def _fingerprints(folder: Path, prefix: str, above: frozenset[tuple[int, int]]) -> Iterator[tuple[str, str]]:
    try:
        status = os.stat(folder)
        itself = status.st_dev, status.st_ino
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except OSError:  # removed during the scan: the next scan is complete
        return
    if itself in above:  # a link to a parent folder would never end
        return
    if prefix and not entries:
        yield prefix, "empty"
    for entry in entries:
        relative = f"{prefix}{entry.name}"
        try:
            if entry.is_dir():
                yield from _fingerprints(Path(entry.path), f"{relative}/", above | {itself})
            else:
                status = entry.stat()
                yield relative, f"{status.st_mtime_ns}-{status.st_size}"
        except OSError:
            continue
