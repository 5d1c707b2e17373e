"""A model repository in a cloud."""

from __future__ import annotations

import errno
import logging
import os
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from tritonpy import ModelChanged, ModelListing, Repository, RepositoryContext, TritonError, Unavailable
from tritonpy_repo_cloud.absence import Absence
from tritonpy_repo_cloud.cache.folder import CacheFolder
from tritonpy_repo_cloud.cache.leases import Lease
from tritonpy_repo_cloud.cache.manifests import Manifests
from tritonpy_repo_cloud.cache.model_cache import ModelCache
from tritonpy_repo_cloud.completeness import Completeness, Marked, Stable
from tritonpy_repo_cloud.failure import Kind, StoreFailure
from tritonpy_repo_cloud.fetching import Damaged, Fetching
from tritonpy_repo_cloud.listing import CloudListing, check_files, listing_of
from tritonpy_repo_cloud.location import parse_location
from tritonpy_repo_cloud.options import CloudOptions
from tritonpy_repo_cloud.pausing import Pauses
from tritonpy_repo_cloud.remote_file import RemoteFile, by_model
from tritonpy_repo_cloud.store import Store

log = logging.getLogger("tritonpy.repository")

_FIRST_PAUSE_S = 5.0
_LOOK_S = 0.2  # at least, between two looks at a model that is not whole
_MOUNTS = {"s3": "TRITON_AWS_MOUNT_DIRECTORY", "gs": "TRITON_GCS_MOUNT_DIRECTORY", "as": "TRITON_AZURE_MOUNT_DIRECTORY"}
Listings = Mapping[str, CloudListing]


class CloudRepository(Repository):
    """Models below a URL that fsspec reads. What is fetched is kept in a cache that all servers of the machine share.

    While the store cannot be read, what was last seen of it stands: in this life, or, where it is out of reach when the server starts, what is
    whole in the cache.
    """

    Options = CloudOptions

    def __init__(self, options: CloudOptions, context: RepositoryContext) -> None:
        super().__init__(options, context)
        self._location = parse_location(context.url)
        folder = _cache_folder(options, self._location.scheme, context.cache)
        self._stopped = threading.Event()
        self._store = Store(self._location, options, self._stopped)
        folder.make()
        self._cache = ModelCache(folder, options.cache_size)
        self._manifests = Manifests(folder, context.url)
        self._fetching = Fetching(context.url, self._store, self._cache, options.parallel, self._stopped)
        self._completeness: Completeness = (
            Stable(options.settle_s) if options.complete_when == "stable" else Marked(options.marker)
        )
        self._absence = Absence(Pauses(_FIRST_PAUSE_S, options.longest_pause_s))
        self._known: Listings | None = None
        self._waiting: dict[str, str] = {}
        self._leases: dict[Path, Lease] = {}
        self._guard = threading.Lock()

    def scan(self) -> Mapping[str, ModelListing]:
        if self._absence.lasts(time.monotonic()):
            return self._remembered()
        try:
            found = self._whole_models()
        except StoreFailure as failure:
            return self._without_store(failure)
        if self._absence.answered():
            log.info("model repository '%s' can be read again", self._location.shown)
        self._known = found
        self._note_seen(found)
        return found

    def find(self, name: str) -> ModelListing | None:
        deadline = None
        while True:
            try:
                files = by_model(self._store.files(name)).get(name)
            except StoreFailure as failure:
                kept = self._kept(name) if failure.kind is Kind.AWAY else None
                if kept is None:
                    raise
                log.warning("%s; '%s' is as it was %s", failure.message, name, self._age())
                return kept
            if files is None:
                return None
            listing = listing_of(name, files, self.options.marker)
            self._recall(listing, files)
            now = time.monotonic()
            deadline = deadline or now + self.options.patience_s
            wanting = self._completeness.wants(name, files, now)
            if not wanting:
                return listing
            if now >= deadline:
                raise Unavailable(f"model '{name}' is not wholly uploaded to '{self._location.shown}': {wanting}")
            self._pause()

    def names(self) -> Collection[str]:
        if self._absence.lasts(time.monotonic()):
            return self._remembered().keys()
        try:
            return by_model(self._store.files()).keys()
        except StoreFailure as failure:
            return self._without_store(failure).keys()

    def peek(self, listing: ModelListing, path: str) -> bytes | None:
        assert isinstance(listing, CloudListing), "a listing of another repository: this is a bug"  # noqa: S101
        file = next((file for file in listing.remote if file.path == f"{listing.name}/{path}"), None)
        if file is None or file.size is None:
            return None
        try:
            return self._fetching.kept(file) if self._fetching.has([file]) else self._store.read(file, 0, file.size)
        except (TritonError, OSError) as error:
            log.warning("'%s' of model '%s' cannot be read now: %s", path, listing.name, error)
            return None

    def localize(self, listing: ModelListing) -> Path:
        assert isinstance(listing, CloudListing), "a listing of another repository: this is a bug"  # noqa: S101
        check_files(listing)
        for attempt in range(1, self.options.attempts + 1):
            try:
                return self._localize(listing)
            except Damaged as damaged:
                self._check_unchanged(listing)
                if attempt == self.options.attempts:
                    raise
                log.warning("%s; it is fetched again", damaged.message)
        raise AssertionError("the last attempt returns or raises: this is a bug")

    def release(self, path: Path) -> None:
        with self._guard:
            lease = self._leases.pop(path, None)
        if lease is not None:
            lease.end()

    def interrupt(self) -> None:
        self._stopped.set()

    def close(self) -> None:
        self._stopped.set()
        self._fetching.close()
        self._cache.close()
        self._store.close()

    def _localize(self, listing: CloudListing) -> Path:
        try:
            lease = self._cache.lease()
            try:
                path = self._filled(lease, listing)
            except BaseException:
                lease.end()
                raise
        except OSError as error:
            raise _disk_failure(listing.name, error) from error
        with self._guard:
            self._leases[path] = lease
        return path

    def _filled(self, lease: Lease, listing: CloudListing) -> Path:
        try:
            digests, fetched = self._fetching.fetch(listing.name, listing.remote, lease)
        except StoreFailure as failure:
            if failure.kind is Kind.MISSING:  # listed, and gone
                self._check_unchanged(listing)
            raise
        if fetched:
            self._check_unchanged(listing)
        start = len(listing.name) + 1
        folder = lease.show(listing.name, {path[start:]: digest for path, digest in digests.items()})
        self._manifests.write(listing.name, list(listing.remote))
        return folder

    def _check_unchanged(self, listing: CloudListing) -> None:
        """Raise ModelChanged where the files are not any more what they were when they were listed."""
        now = listing_of(
            listing.name, by_model(self._store.files(listing.name)).get(listing.name, []), self.options.marker
        )
        if now.fingerprint != listing.fingerprint:
            changed = sorted({path for path, _ in now.files.items() ^ listing.files.items()})
            raise ModelChanged(f"model '{listing.name}' changed while it was fetched: {', '.join(changed)}")

    def _whole_models(self) -> Listings:
        """Return the models that are whole; the first look of all waits for those that are not yet."""
        deadline = None
        while True:
            found = by_model(self._store.files())
            now = time.monotonic()
            deadline = deadline or now + (self.options.patience_s if self._known is None else 0.0)
            waiting: dict[str, str] = {}
            whole: dict[str, CloudListing] = {}
            for name, files in found.items():
                listing = listing_of(name, files, self.options.marker)
                self._recall(listing, files)
                if wanting := self._completeness.wants(name, files, now):
                    waiting[name] = wanting
                else:
                    whole[name] = listing
            if not waiting or now >= deadline:
                break
            self._pause()
        self._completeness.keep(found.keys())
        self._tell(waiting)
        known = self._known or {}
        return whole | {name: known[name] for name in waiting if name in known}

    def _recall(self, listing: CloudListing, files: Sequence[RemoteFile]) -> None:
        """Vouch for a model that is as it was when it was fetched, by whichever server."""
        known = self._known.get(listing.name) if self._known is not None else None
        if known != listing and self._manifests.read(listing.name) == list(listing.remote):
            self._completeness.vouch(listing.name, files)

    def _tell(self, waiting: dict[str, str]) -> None:
        for name, wanting in waiting.items():
            if name not in self._waiting:
                log.warning("model '%s' in '%s' is left as it is: %s", name, self._location.shown, wanting)
        self._waiting = waiting

    def _without_store(self, failure: StoreFailure) -> Listings:
        """Return what is known though the store cannot be read; raises `failure` where nothing is."""
        news = self._absence.failed(failure, time.monotonic())
        if self._known is None and failure.kind is Kind.AWAY:
            kept = {name: listing for name in self._manifests.names() if (listing := self._kept(name)) is not None}
            if kept:
                log.warning(
                    "%s; of %d models the cache has all that was there %s", failure.message, len(kept), self._age()
                )
                self._known = kept
                return kept
        if self._known is None:
            raise failure
        if news:
            log.error("%s; what is loaded goes on serving", failure.message)
        return self._known

    def _remembered(self) -> Listings:
        if self._known is None:
            assert self._absence.failure is not None, "there is no pause without a failure: this is a bug"  # noqa: S101
            raise self._absence.failure
        return self._known

    def _kept(self, name: str) -> CloudListing | None:
        """Return the model as it was last fetched, if the cache still has all of it."""
        files = self._manifests.read(name)
        return listing_of(name, files, self.options.marker) if files and self._fetching.has(files) else None

    def _note_seen(self, found: Listings) -> None:
        try:
            self._manifests.keep(set(found))
        except OSError as error:
            log.warning("the model cache cannot be written: %s", error)

    def _age(self) -> str:
        age_s = self._manifests.age_s()
        if age_s == float("inf"):
            return "when it was fetched"
        hours, minutes = int(age_s // 3600), int(age_s % 3600 // 60)
        return f"{hours} h {minutes} min ago" if hours else f"{minutes} min {int(age_s % 60)} s ago"

    def _pause(self) -> None:
        if self._stopped.wait(max(self.options.settle_s, _LOOK_S)):
            raise Unavailable("Server exiting")


def _cache_folder(options: CloudOptions, scheme: str, default: Path) -> CacheFolder:
    if options.cache_directory is not None:
        return CacheFolder(options.cache_directory)
    named = os.environ.get(_MOUNTS.get(scheme, ""), "")
    return CacheFolder(Path(named)) if named else CacheFolder(default / "repositories", configured=False)


def _disk_failure(name: str, error: OSError) -> TritonError:
    what = os.strerror(error.errno) if error.errno else str(error)
    full = error.errno in {errno.ENOSPC, errno.EDQUOT}
    return Unavailable(f"model '{name}' cannot be kept in the model cache: {what}" + ("; make room" if full else ""))
