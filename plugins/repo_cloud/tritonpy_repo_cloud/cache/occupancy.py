"""Disk usage of the cache, and eviction."""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from tritonpy import Unavailable
from tritonpy_repo_cloud.cache.blobs import Blobs, StoredFile
from tritonpy_repo_cloud.cache.eviction import select_evictions
from tritonpy_repo_cloud.cache.file_lock import try_lock
from tritonpy_repo_cloud.cache.folder import CacheFolder
from tritonpy_repo_cloud.cache.leases import Leases
from tritonpy_repo_cloud.cache.objects import Objects
from tritonpy_repo_cloud.cache.partial_file import JOURNAL, PartialFile

log = logging.getLogger("tritonpy.repository")

LOCK = "lock"
_DISK_FULL = {errno.ENOSPC, errno.EDQUOT}


class Occupancy:
    """Counts blobs and partial files, and evicts those that no server uses or fetches.

    All methods need the cache's lock.
    """

    def __init__(
        self, folder: CacheFolder, blobs: Blobs, objects: Objects, leases: Leases, limit: int
    ) -> None:
        self._folder = folder
        self._blobs = blobs
        self._objects = objects
        self._leases = leases
        self._limit = limit

    def allocate(self, partial_files: Sequence[PartialFile]) -> None:
        """Allocate the missing disk space of the partial files, for all of them or none.

        Evicts the least recently used files to keep the limit and to free disk space. Raises
        `Unavailable` if that is not enough, or `OSError`.
        """
        new = [partial for partial in partial_files if not partial.is_allocated()]
        if new:
            self._keep_limit(sum(partial.size for partial in new))
        for partial in partial_files:
            self._allocate(partial)

    def _allocate(self, partial: PartialFile) -> None:
        while True:
            try:
                partial.allocate()
            except OSError as error:
                if error.errno not in _DISK_FULL:
                    raise
                if not self._evict_oldest():
                    raise self._disk_full_error(partial.size) from error
            else:
                return

    def _keep_limit(self, needed: int) -> None:
        used = self._leases.in_use()
        stored = list(self._blobs.stored())
        for each, idle in self._partial_files():
            stored.append(each)
            if not idle:
                used.add(each.path)
        evicted = select_evictions(stored, used, self._limit, needed)
        if evicted is None:
            held = sum(each.byte_size for each in stored if each.path in used)
            raise Unavailable(
                f"the model cache is full: {needed} bytes are needed and {held} of its "
                f"{self._limit} bytes are in use; "
                "unload models or increase the option cache_size"
            )
        self._remove(evicted)

    def _evict_oldest(self) -> bool:
        """Evict the least recently used file because the disk is full.

        Return False if none is idle.
        """
        used = self._leases.in_use()
        idle = [each for each in self._blobs.stored() if each.path not in used]
        idle += [each for each, is_idle in self._partial_files() if is_idle]
        if not idle:
            return False
        self._remove([min(idle, key=lambda each: each.used_ns)])
        return True

    def _disk_full_error(self, needed: int) -> Unavailable:
        disk = os.statvfs(self._folder.root)
        return Unavailable(
            f"the disk of the model cache is full: {needed} bytes are needed in "
            f"{self._folder.root}, "
            f"{disk.f_bavail * disk.f_frsize} are free"
        )

    def _remove(self, evicted: Sequence[StoredFile]) -> None:
        for each in evicted:
            if each.path.is_relative_to(self._folder.partial):
                PartialFile(each.path, each.byte_size).discard()
            else:
                self._blobs.remove(each.path.name)
        if evicted:
            self._objects.remove_dangling()
            byte_size = sum(each.byte_size for each in evicted)
            log.info("removed %d bytes in %d files from the model cache", byte_size, len(evicted))

    def _partial_files(self) -> Iterator[tuple[StoredFile, bool]]:
        """Yield each partial file, and whether it is idle, that is, no server fetches it."""
        for folder in self._folder.partial.glob("*/"):
            idle = _is_free(folder / LOCK)
            for path in folder.iterdir():
                if path.name != LOCK and path.suffix != JOURNAL:
                    status = path.stat()
                    yield StoredFile(path, status.st_size, status.st_mtime_ns), idle


def _is_free(lock: Path) -> bool:
    descriptor = try_lock(lock)
    if descriptor is None:
        return False
    os.close(descriptor)
    return True
