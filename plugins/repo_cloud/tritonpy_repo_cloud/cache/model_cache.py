"""Interface of the model cache for fetching and reading objects."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Event

from tritonpy import Unavailable
from tritonpy_repo_cloud.cache.blobs import Blobs
from tritonpy_repo_cloud.cache.file_lock import try_lock
from tritonpy_repo_cloud.cache.folder import CacheFolder, hash_key
from tritonpy_repo_cloud.cache.leases import CacheLease, Leases
from tritonpy_repo_cloud.cache.objects import Objects
from tritonpy_repo_cloud.cache.occupancy import LOCK, Occupancy
from tritonpy_repo_cloud.cache.partial_file import PartialFile

log = logging.getLogger("tritonpy.repository")
_LOG_INTERVAL_S = 10.0  # between two log lines about waiting
_POLL_INTERVAL_S = 0.2  # between two attempts to take a lock that another server holds


class ModelCache:
    """Cache of at most `limit` bytes; a model that does not fit next to those in use is rejected.

    An *object* is one version of a file in a store, identified by a key. The cache maps keys to
    digests, and digests to content.
    """

    def __init__(self, folder: CacheFolder, limit: int) -> None:
        self._folder = folder
        self._blobs = Blobs(folder.blobs)
        self._leases = Leases(folder, self._blobs)
        self._objects = Objects(folder.objects, self._blobs)
        self._occupancy = Occupancy(folder, self._blobs, self._objects, self._leases, limit)

    def lease(self) -> CacheLease:
        """Return a lease without blobs; raise `OSError` on failure."""
        return self._leases.create()

    def close(self) -> None:
        """Release all leases."""
        self._leases.close()

    def has(self, key: str) -> bool:
        """Return whether the object's content is in the cache."""
        return self._objects.digest(key) is not None

    def content(self, key: str) -> bytes | None:
        """Return the object's content, or None if it is missing or damaged.

        Raises `OSError` on failure.
        """
        lease = self.lease()
        try:
            digest = self.acquire(key, lease)
            return None if digest is None else self._blobs.path(digest).read_bytes()
        finally:
            lease.release()

    def acquire(self, key: str, lease: CacheLease) -> str | None:
        """Return the digest of the object's content, held by `lease` from now on.

        Returns None if the content is missing or damaged.
        """
        with self._folder.lock():
            digest = self._objects.digest(key)
            if digest is None:
                return None
            lease.hold(digest)
        if self._blobs.is_intact(digest):
            return digest
        with self._folder.lock():
            if not self._blobs.is_intact(
                digest
            ):  # unless another server has restored it in the meantime
                self._blobs.remove(digest)
        return None

    @contextmanager
    def exclusive_fetch(self, model: str, stopped: Event) -> Iterator[Path]:
        """Fetch files of this model exclusively among all servers.

        Yield the folder for partial files. Raises `Unavailable` if `stopped` is set while another
        server fetches them.
        """
        folder = self._folder.partial / hash_key(model)
        folder.mkdir(exist_ok=True)
        began, next_log_s = time.monotonic(), 0.0
        while (descriptor := try_lock(folder / LOCK)) is None:
            waited_s = time.monotonic() - began
            if waited_s >= next_log_s:
                log.info(
                    "waiting for another server that fetches '%s' (%.0f s so far)",
                    model.rpartition("\0")[2],
                    waited_s,
                )
                next_log_s = waited_s + _LOG_INTERVAL_S
            if stopped.wait(_POLL_INTERVAL_S):
                raise Unavailable("Server exiting")
        try:
            yield folder
        finally:
            os.close(descriptor)

    def allocate(self, folder: Path, sizes: Mapping[str, int]) -> list[PartialFile]:
        """Return new or resumed partial files in `folder`, a folder of `exclusive_fetch`.

        `sizes` maps object keys to sizes in bytes. Raises `Unavailable` if they do not all fit, or
        `OSError`.
        """
        partial_files = [PartialFile(folder / key, size) for key, size in sizes.items()]
        with self._folder.lock():
            self._occupancy.allocate(partial_files)
        return partial_files

    def publish(self, key: str, partial: PartialFile, digest: str, lease: CacheLease) -> None:
        """Store a fetched file with this digest as the object's content, held by `lease`.

        Raises `OSError` on failure.
        """
        with self._folder.lock():
            self._blobs.add(partial.finish(), digest)
            self._objects.record(key, digest)
            lease.hold(digest)
