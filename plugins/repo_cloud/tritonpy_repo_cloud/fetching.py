"""Brings the files of a model from the store into the cache: in parallel, in pieces, and checked."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from pathlib import Path

from tritonpy import Unavailable
from tritonpy_repo_cloud.cache.folder import key_of
from tritonpy_repo_cloud.cache.leases import Lease
from tritonpy_repo_cloud.cache.model_cache import ModelCache
from tritonpy_repo_cloud.cache.partial import Partial
from tritonpy_repo_cloud.checksum import digests
from tritonpy_repo_cloud.progress import Progress, progress, readable
from tritonpy_repo_cloud.remote_file import RemoteFile
from tritonpy_repo_cloud.store import Store

log = logging.getLogger("tritonpy.repository")


class Damaged(Unavailable):
    """What arrived is not what the store says that it has."""


class Fetching:
    """Of one repository at `url`: all its models share the threads, so that there are never more than `parallel` requests."""

    def __init__(self, url: str, store: Store, cache: ModelCache, parallel: int, stopped: threading.Event) -> None:
        self._url = url
        self._store = store
        self._cache = cache
        self._stopped = stopped
        self._threads = ThreadPoolExecutor(parallel, thread_name_prefix="fetch")

    def has(self, files: Sequence[RemoteFile]) -> bool:
        """Say whether the cache has all of these files."""
        return all(self._cache.has(self._key(file)) for file in files if not _is_folder(file))

    def kept(self, file: RemoteFile) -> bytes | None:
        """Return the content of a file that the cache has, None where it has it no more. Raises OSError."""
        return self._cache.content(self._key(file))

    def fetch(self, name: str, files: Sequence[RemoteFile], lease: Lease) -> tuple[dict[str, str], bool]:
        """Return the digests of the files by their paths, all of which `lease` holds, and whether something had to be fetched.

        A file that the cache has is not fetched, and one that was begun goes on. Raises StoreFailure, Damaged, Unavailable where there is no room, OSError.
        """
        taken, missing = self._taken(files, lease)
        if not missing:
            return taken, False
        with self._cache.fetching(f"{self._url}\0{name}", self._stopped) as folder:
            found, missing = self._taken(missing, lease)  # by another server meanwhile
            if missing:
                found |= self._fetch(name, missing, lease, folder)
        return taken | found, True

    def close(self) -> None:
        """End the threads."""
        self._threads.shutdown(wait=True, cancel_futures=True)

    def _taken(self, files: Sequence[RemoteFile], lease: Lease) -> tuple[dict[str, str], list[RemoteFile]]:
        taken: dict[str, str] = {}
        missing: list[RemoteFile] = []
        for file in files:
            digest = "" if _is_folder(file) else self._cache.take(self._key(file), lease)
            if digest is None:
                missing.append(file)
            else:
                taken[file.path] = digest
        return taken, missing

    def _fetch(self, name: str, files: Sequence[RemoteFile], lease: Lease, folder: Path) -> dict[str, str]:
        started = time.monotonic()
        total = sum(_size(file) for file in files)
        log.info("fetching '%s': %d files, %s", name, len(files), readable(total))
        downloads = [_Download(self._store, file, self._key(file), self._cache, lease) for file in files]
        partials = self._cache.begin(folder, {download.key: _size(download.file) for download in downloads})
        for download, partial in zip(downloads, partials, strict=True):
            download.begin(partial)
        already = sum(download.already for download in downloads)
        with progress(name, total, already) as shown:
            self._run(downloads, shown)
        took = time.monotonic() - started
        resumed = f", {readable(already)} of it were here" if already else ""
        log.info("fetched '%s': %d files, %s in %.1f s%s", name, len(files), readable(total), took, resumed)
        return {download.file.path: download.digest for download in downloads}

    def _run(self, downloads: Sequence[_Download], shown: Progress) -> None:
        """Fetch every piece; the first failure ends all of them, and leaves what has arrived for the next time."""
        failed = threading.Event()
        futures: list[Future[None]] = [
            self._threads.submit(download.fetch, piece, shown, failed)
            for download in downloads
            for piece in download.missing or [(0, 0)]
        ]
        wait(futures, return_when=FIRST_EXCEPTION)
        failed.set()
        wait(futures)
        for future in futures:
            future.result()

    def _key(self, file: RemoteFile) -> str:
        return key_of(self._url, file.path, file.version)


class _Download:
    """One file on its way. Whichever thread brings its last piece finishes it."""

    def __init__(self, store: Store, file: RemoteFile, key: str, cache: ModelCache, lease: Lease) -> None:
        self.file = file
        self.digest = ""
        self.missing: list[tuple[int, int]] = []
        self.already = 0
        self._store = store
        self.key = key
        self._cache = cache
        self._lease = lease
        self._partial: Partial | None = None
        self._left = 0
        self._guard = threading.Lock()

    def begin(self, partial: Partial) -> None:
        """See what is left to be fetched."""
        self._partial = partial
        self.missing = partial.missing()
        if len(self.missing) > 1 and not self._store.has_ranges(self.file):
            self.missing = [(0, _size(self.file))]
        self.already = _size(self.file) - sum(end - start for start, end in self.missing)
        self._left = len(self.missing)

    def fetch(self, piece: tuple[int, int], shown: Progress, failed: threading.Event) -> None:
        """Bring one piece, unless one has `failed`; with the last one the file is checked and kept."""
        partial, (start, end) = self._partial, piece
        assert partial is not None, "a download is begun first: this is a bug"  # noqa: S101
        if failed.is_set():
            return
        if end > start:
            data = self._store.read(self.file, start, end)
            partial.write(start, data)
            shown.add(end - start)
        with self._guard:
            self._left -= 1
            last = self._left <= 0
        if last:
            self._finish(partial)

    def _finish(self, partial: Partial) -> None:
        algorithm, expected = self.file.checksum or ("", "")
        found = digests(partial.path, algorithm)
        if algorithm in found and found[algorithm] != expected and self._store.vouches(self.file):
            partial.discard()
            raise Damaged(
                f"'{self.file.path}' arrived damaged: its {algorithm} is {found[algorithm]}, the store says {expected}"
            )
        self.digest = found["sha256"]
        self._cache.publish(self.key, partial, self.digest, self._lease)


def _is_folder(file: RemoteFile) -> bool:
    return file.path.endswith("/")


def _size(file: RemoteFile) -> int:
    return file.size or 0
