"""How full the cache is, and making room in it."""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from tritonpy import Unavailable
from tritonpy_repo_cloud.cache.blobs import Blobs, Stored
from tritonpy_repo_cloud.cache.file_lock import try_lock
from tritonpy_repo_cloud.cache.folder import CacheFolder
from tritonpy_repo_cloud.cache.leases import Leases
from tritonpy_repo_cloud.cache.objects import Objects
from tritonpy_repo_cloud.cache.partial import JOURNAL, Partial
from tritonpy_repo_cloud.cache.room import to_evict

log = logging.getLogger("tritonpy.repository")

LOCK = "lock"
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT}


class Occupancy:
    """Blobs and partial files count; those that a server uses or fetches stay. Everything here is called under the cache's lock."""

    def __init__(self, folder: CacheFolder, blobs: Blobs, objects: Objects, leases: Leases, limit: int) -> None:
        self._folder = folder
        self._blobs = blobs
        self._objects = objects
        self._leases = leases
        self._limit = limit

    def allocate(self, partials: Sequence[Partial]) -> None:
        """Take the room of files that are to be fetched, those that have none yet: of all or, without removing anything for it, of none.

        What was not used for longest goes, so that the limit is kept and the disk has the room. Raises Unavailable where neither can be, OSError.
        """
        new = [partial for partial in partials if not partial.is_allocated()]
        if new:
            self._keep_limit(sum(partial.size for partial in new))
        for partial in partials:
            self._allocate(partial)

    def _allocate(self, partial: Partial) -> None:
        while True:
            try:
                partial.allocate()
            except OSError as error:
                if error.errno not in _NO_ROOM:
                    raise
                if not self._give_way():
                    raise self._full(partial.size) from error
            else:
                return

    def _keep_limit(self, needed: int) -> None:
        used = self._leases.in_use()
        stored = list(self._blobs.stored())
        for each, idle in self._partials():
            stored.append(each)
            if not idle:
                used.add(each.path)
        going = to_evict(stored, used, self._limit, needed)
        if going is None:
            held = sum(each.byte_size for each in stored if each.path in used)
            raise Unavailable(
                f"no room in the model cache: {needed} bytes are needed and {held} of its {self._limit} are in use; "
                "unload models, or raise the option cache_size"
            )
        self._remove(going)

    def _give_way(self) -> bool:
        """Remove what was not used for longest, since the disk is full; False where nothing can be removed."""
        used = self._leases.in_use()
        idle = [each for each in self._blobs.stored() if each.path not in used]
        idle += [each for each, is_idle in self._partials() if is_idle]
        if not idle:
            return False
        self._remove([min(idle, key=lambda each: each.used_ns)])
        return True

    def _full(self, needed: int) -> Unavailable:
        disk = os.statvfs(self._folder.root)
        return Unavailable(
            f"the disk of the model cache is full: {needed} bytes are needed in {self._folder.root}, "
            f"{disk.f_bavail * disk.f_frsize} are free"
        )

    def _remove(self, going: Sequence[Stored]) -> None:
        for each in going:
            if each.path.is_relative_to(self._folder.partial):
                Partial(each.path, each.byte_size).discard()
            else:
                self._blobs.remove(each.path.name)
        if going:
            self._objects.forget_lost()
            byte_size = sum(each.byte_size for each in going)
            log.info("removed %d bytes in %d files from the model cache", byte_size, len(going))

    def _partials(self) -> Iterator[tuple[Stored, bool]]:
        """Yield each partial file, and whether nobody fetches it now."""
        for folder in self._folder.partial.glob("*/"):
            idle = _is_free(folder / LOCK)
            for path in folder.iterdir():
                if path.name != LOCK and path.suffix != JOURNAL:
                    status = path.stat()
                    yield Stored(path, status.st_size, status.st_mtime_ns), idle


def _is_free(lock: Path) -> bool:
    descriptor = try_lock(lock)
    if descriptor is None:
        return False
    os.close(descriptor)
    return True
