"""Model repositories in local folders: `<repository>/<model>/[config.pbtxt]/<version>/<files>`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote, urlparse

from tritonpy.api.repository import ModelListing, Repository
from tritonpy.errors import Unavailable


class LocalRepository(Repository):
    """A folder with one folder per model. Names that start with a dot are not models."""

    @property
    def root(self) -> Path:
        """The folder."""
        url = self.context.url
        return Path(unquote(urlparse(url).path) if url.startswith("file:") else url)

    def scan(self) -> Mapping[str, ModelListing]:
        root = self.root
        try:
            names = sorted(
                entry.name for entry in os.scandir(root) if entry.is_dir() and not entry.name.startswith(".")
            )
        except OSError as error:
            raise Unavailable(
                f"model repository '{self.context.url}' cannot be read: {error.strerror} ({root})"
            ) from error
        return {name: list_model(name, root / name) for name in names}


def list_model(name: str, path: Path) -> ModelListing:
    """Return the listing of the model in the folder `path`: a file's fingerprint is its time of change and its size."""
    files = dict(_fingerprints(path, ""))
    return ModelListing(name, f"{hash(frozenset(files.items())):x}", files, path)


def _fingerprints(folder: Path, prefix: str) -> Iterator[tuple[str, str]]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:  # removed while we look: the next scan sees it whole
        return
    for entry in entries:
        relative = f"{prefix}{entry.name}"
        try:
            if entry.is_dir():
                yield f"{relative}/", "folder"
                yield from _fingerprints(Path(entry.path), f"{relative}/")
            else:
                status = entry.stat()
                yield relative, f"{status.st_mtime_ns}-{status.st_size}"
        except OSError:
            continue
