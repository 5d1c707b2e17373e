"""Download of a model's files into the cache, in parallel pieces and with checksums."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from pathlib import Path

from tritonpy import Unavailable
from tritonpy_repo_cloud.cache.folder import hash_key
from tritonpy_repo_cloud.cache.leases import CacheLease
from tritonpy_repo_cloud.cache.model_cache import ModelCache
from tritonpy_repo_cloud.cache.partial_file import PartialFile
from tritonpy_repo_cloud.checksum import file_digests
from tritonpy_repo_cloud.progress import DownloadProgress, format_bytes, progress
from tritonpy_repo_cloud.remote_file import RemoteFile
from tritonpy_repo_cloud.store import ObjectStore

log = logging.getLogger("tritonpy.repository")


class DamagedFile(Unavailable):
    """A downloaded file does not match the store's checksum."""


class Fetcher:
    """Fetches the models of the repository at `url`.

    All models share the threads, so there are at most `parallel` concurrent requests.
    """

    def __init__(
        self,
        url: str,
        store: ObjectStore,
        cache: ModelCache,
        parallel: int,
        stopped: threading.Event,
    ) -> None:
        self._url = url
        self._store = store
        self._cache = cache
        self._stopped = stopped
        self._threads = ThreadPoolExecutor(parallel, thread_name_prefix="fetch")

    def has(self, files: Sequence[RemoteFile]) -> bool:
        """Return whether all of these files are in the cache."""
        return all(self._cache.has(self._key(file)) for file in files if not _is_folder(file))

    def cached_content(self, file: RemoteFile) -> bytes | None:
        """Return the cached content of a file, or None if it is not cached.

        Raises `OSError` on failure.
        """
        return self._cache.content(self._key(file))

    def fetch(
        self, name: str, files: Sequence[RemoteFile], lease: CacheLease
    ) -> tuple[dict[str, str], bool]:
        """Return the files' digests by path, held by `lease`, and whether any file was fetched.

        Cached files are not fetched, and partial downloads are resumed. Raises `StoreError`,
        `DamagedFile`, `Unavailable` if the cache is full, or `OSError`.
        """
        taken, missing = self._acquire_cached(files, lease)
        if not missing:
            return taken, False
        with self._cache.exclusive_fetch(f"{self._url}\0{name}", self._stopped) as folder:
            found, missing = self._acquire_cached(
                missing, lease
            )  # fetched by another server in the meantime
            if missing:
                found |= self._fetch(name, missing, lease, folder)
        return taken | found, True

    def close(self) -> None:
        """End the threads."""
        self._threads.shutdown(wait=True, cancel_futures=True)

    def _acquire_cached(
        self, files: Sequence[RemoteFile], lease: CacheLease
    ) -> tuple[dict[str, str], list[RemoteFile]]:
        taken: dict[str, str] = {}
        missing: list[RemoteFile] = []
        for file in files:
            digest = "" if _is_folder(file) else self._cache.acquire(self._key(file), lease)
            if digest is None:
                missing.append(file)
            else:
                taken[file.path] = digest
        return taken, missing

    def _fetch(
        self, name: str, files: Sequence[RemoteFile], lease: CacheLease, folder: Path
    ) -> dict[str, str]:
        started = time.monotonic()
        total = sum(_size(file) for file in files)
        log.info("fetching '%s': %d files, %s", name, len(files), format_bytes(total))
        downloads = [
            _Download(self._store, file, self._key(file), self._cache, lease) for file in files
        ]
        partial_files = self._cache.allocate(
            folder, {download.key: _size(download.file) for download in downloads}
        )
        for download, partial in zip(downloads, partial_files, strict=True):
            download.prepare(partial)
        already = sum(download.already for download in downloads)
        with progress(name, total, already) as reporter:
            self._run(downloads, reporter)
        took = time.monotonic() - started
        resumed = f", {format_bytes(already)} of it already present" if already else ""
        log.info(
            "fetched '%s': %d files, %s in %.1f s%s",
            name,
            len(files),
            format_bytes(total),
            took,
            resumed,
        )
        return {download.file.path: download.digest for download in downloads}

    def _run(self, downloads: Sequence[_Download], reporter: DownloadProgress) -> None:
        """Fetch all pieces.

        The first failure stops the rest and keeps the fetched pieces for a retry.
        """
        failed = threading.Event()
        futures: list[Future[None]] = [
            self._threads.submit(download.fetch, piece, reporter, failed)
            for download in downloads
            for piece in download.missing or [(0, 0)]
        ]
        wait(futures, return_when=FIRST_EXCEPTION)
        failed.set()
        wait(futures)
        for future in futures:
            future.result()

    def _key(self, file: RemoteFile) -> str:
        return hash_key(self._url, file.path, file.version)


class _Download:
    """Download of one file; the thread that fetches the last piece completes it."""

    def __init__(
        self, store: ObjectStore, file: RemoteFile, key: str, cache: ModelCache, lease: CacheLease
    ) -> None:
        self.file = file
        self.digest = ""
        self.missing: list[tuple[int, int]] = []
        self.already = 0
        self._store = store
        self.key = key
        self._cache = cache
        self._lease = lease
        self._partial: PartialFile | None = None
        self._left = 0
        self._guard = threading.Lock()

    def prepare(self, partial: PartialFile) -> None:
        """Determine the missing pieces."""
        self._partial = partial
        self.missing = partial.missing()
        if len(self.missing) > 1 and not self._store.has_ranges(self.file):
            self.missing = [(0, _size(self.file))]
        self.already = _size(self.file) - sum(end - start for start, end in self.missing)
        self._left = len(self.missing)

    def fetch(
        self, piece: tuple[int, int], reporter: DownloadProgress, failed: threading.Event
    ) -> None:
        """Fetch one piece unless another has `failed`.

        After the last one, verify and store the file.
        """
        partial, (start, end) = self._partial, piece
        assert partial is not None, "a download is begun first: this is a bug"  # noqa: S101
        if failed.is_set():
            return
        if end > start:
            data = self._store.read(self.file, start, end)
            partial.write(start, data)
            reporter.add(end - start)
        with self._guard:
            self._left -= 1
            last = self._left <= 0
        if last:
            self._finish(partial)

    def _finish(self, partial: PartialFile) -> None:
        algorithm, expected = self.file.checksum or ("", "")
        found = file_digests(partial.path, algorithm)
        if (
            algorithm in found
            and found[algorithm] != expected
            and self._store.has_content_checksum(self.file)
        ):
            partial.discard()
            raise DamagedFile(
                f"'{self.file.path}' is damaged: its {algorithm} is {found[algorithm]}, "
                f"but the store reports {expected}"
            )
        self.digest = found["sha256"]
        self._cache.publish(self.key, partial, self.digest, self._lease)


def _is_folder(file: RemoteFile) -> bool:
    return file.path.endswith("/")


def _size(file: RemoteFile) -> int:
    return file.size or 0
