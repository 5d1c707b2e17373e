"""Local model repositories: `<repository>/<model>/[config.pbtxt]/<version>/<files>`."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

from tritonpy.api.repository import ModelListing, Repository, RepositoryContext
from tritonpy.installation import install_command
from tritonpy_types.errors import Unavailable

if TYPE_CHECKING:
    from typing import Self


log = logging.getLogger("tritonpy.repository")

_QUIET_MS = 500  # pause that ends a burst of changes, such as copying a model
_LONGEST_MS = 5_000  # longest wait for that pause


class FolderWatch:
    """Calls `changed` after changes anywhere below a folder, on its own thread."""

    def __init__(
        self, watch: Callable[..., Any], folder: Path, changed: Callable[[], None]
    ) -> None:
        self._watch = watch
        self._folder = folder
        self._changed = changed
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"watch {folder}", daemon=True)

    @classmethod
    def start(cls, folder: Path, changed: Callable[[], None]) -> Self | None:
        """Start a watch, or return None if watchfiles is not installed.

        `changed` is called once per burst of changes.
        """
        try:
            from watchfiles import watch
        except ImportError:
            log.debug(
                "install watchfiles to detect changes of '%s' immediately: %s",
                folder,
                install_command("tritonpy[watch]"),
            )
            return None
        started = cls(watch, folder, changed)
        started._thread.start()
        return started

    def stop(self) -> None:
        """Stop; `changed` is not called any more."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            for _ in self._watch(
                self._folder,
                watch_filter=None,
                debounce=_LONGEST_MS,
                step=_QUIET_MS,
                stop_event=self._stopped,
                rust_timeout=_QUIET_MS,
                raise_interrupt=False,
            ):
                self._changed()
        except Exception as error:
            log.warning(
                "cannot watch '%s', changes are detected by polling: %s", self._folder, error
            )


class LocalRepository(Repository):
    """A folder with one folder per model. Names that start with a dot are ignored.

    `folders` maps the names of models to their folders, for models with another name than theirs.
    """

    def __init__(
        self, options: Any, context: RepositoryContext, folders: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(options, context)
        self.folders = folders or {}
        self._watch: FolderWatch | None = None

    @property
    def root(self) -> Path:
        """The folder of the repository."""
        url = self.context.url
        return Path(unquote(urlparse(url).path) if url.startswith("file:") else url)

    def scan(self) -> Mapping[str, ModelListing]:
        return {name: self._listing(name) for name in self.names()}

    def find(self, name: str) -> ModelListing | None:
        return self._listing(name) if name in self.names() else None

    def _listing(self, name: str) -> ModelListing:
        return list_model(name, self.root / self.folders.get(name, name), name in self.folders)

    def names(self) -> Collection[str]:
        names = {folder: name for name, folder in self.folders.items()}
        try:
            with os.scandir(self.root) as entries:
                return sorted(
                    names.get(entry.name, entry.name)
                    for entry in entries
                    if entry.is_dir() and not entry.name.startswith(".")
                )
        except OSError as error:
            raise Unavailable(
                f"model repository '{self.context.url}' cannot be read: {error.strerror} "
                f"({self.root})"
            ) from error

    def watch(self, changed: Callable[[], None]) -> None:
        self._watch = FolderWatch.start(self.root, changed)

    def close(self) -> None:
        if self._watch is not None:
            self._watch.stop()


def list_model(name: str, path: Path, renamed: bool = False) -> ModelListing:
    """Return the listing of the model in the folder `path`.

    The fingerprint of a file is its modification time and size. An empty folder is listed with a
    trailing slash, as a version may need no file.
    """
    files = dict(_fingerprints(path, "", frozenset()))
    return ModelListing(name, f"{hash(frozenset(files.items())):x}", files, path, renamed)


def _fingerprints(
    folder: Path, prefix: str, above: frozenset[tuple[int, int]]
) -> Iterator[tuple[str, str]]:
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
