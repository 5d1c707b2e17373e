"""The cache as those who fetch models use it."""

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
from tritonpy_repo_cloud.cache.folder import CacheFolder, key_of
from tritonpy_repo_cloud.cache.leases import Lease, Leases
from tritonpy_repo_cloud.cache.objects import Objects
from tritonpy_repo_cloud.cache.occupancy import LOCK, Occupancy
from tritonpy_repo_cloud.cache.partial import Partial

log = logging.getLogger("tritonpy.repository")
_TELL_S = 10.0  # between two lines of the log that say so
_LOOK_S = 0.2  # between two looks at a lock that another server holds


class ModelCache:
    """At most `limit` bytes, and more than that never: a model that does not fit beside those in use is refused.

    An *object* is a file of a store in one version; its key stands for both. What it is a copy of is known by key, where it lies by content.
    """

    def __init__(self, folder: CacheFolder, limit: int) -> None:
        self._folder = folder
        self._blobs = Blobs(folder.blobs)
        self._leases = Leases(folder, self._blobs)
        self._objects = Objects(folder.objects, self._blobs)
        self._occupancy = Occupancy(folder, self._blobs, self._objects, self._leases, limit)

    def lease(self) -> Lease:
        """Return a lease that holds nothing yet. Raises OSError."""
        return self._leases.new()

    def close(self) -> None:
        """End all leases."""
        self._leases.close()

    def has(self, key: str) -> bool:
        """Say whether the object's content is in the cache."""
        return self._objects.digest(key) is not None

    def content(self, key: str) -> bytes | None:
        """Return the object's content, None where it is not in the cache, or not sound. Raises OSError."""
        lease = self.lease()
        try:
            digest = self.take(key, lease)
            return None if digest is None else self._blobs.path(digest).read_bytes()
        finally:
            lease.end()

    def take(self, key: str, lease: Lease) -> str | None:
        """Return the digest of the object's content, which `lease` holds from now on; None where it is not in the cache, or not sound."""
        with self._folder.lock():
            digest = self._objects.digest(key)
            if digest is None:
                return None
            lease.hold(digest)
        if self._blobs.sound(digest):
            return digest
        with self._folder.lock():
            if not self._blobs.sound(digest):  # unless another server has brought a sound one meanwhile
                self._blobs.remove(digest)
        return None

    @contextmanager
    def fetching(self, model: str, stopped: Event) -> Iterator[Path]:
        """Be the only one, of all servers, who fetches files of this model; gives the folder for its partial files.

        Raises Unavailable when `stopped` is set while another one fetches them.
        """
        folder = self._folder.partial / key_of(model)
        folder.mkdir(exist_ok=True)
        began, told = time.monotonic(), 0.0
        while (descriptor := try_lock(folder / LOCK)) is None:
            waited_s = time.monotonic() - began
            if waited_s >= told:
                log.info(
                    "another server fetches '%s', waiting for it (%.0f s so far)", model.rpartition("\0")[2], waited_s
                )
                told = waited_s + _TELL_S
            if stopped.wait(_LOOK_S):
                raise Unavailable("Server exiting")
        try:
            yield folder
        finally:
            os.close(descriptor)

    def begin(self, folder: Path, sizes: Mapping[str, int]) -> list[Partial]:
        """Return the files in which objects are fetched, or go on to be, in a folder that `fetching` gave; `sizes` has their bytes by key.

        Raises Unavailable where there is no room for all of them, OSError.
        """
        partials = [Partial(folder / key, size) for key, size in sizes.items()]
        with self._folder.lock():
            self._occupancy.allocate(partials)
        return partials

    def publish(self, key: str, partial: Partial, digest: str, lease: Lease) -> None:
        """Keep what was fetched, whose content has this digest, as the object's content; `lease` holds it. Raises OSError."""
        with self._folder.lock():
            self._blobs.add(partial.finished(), digest)
            self._objects.note(key, digest)
            lease.hold(digest)
