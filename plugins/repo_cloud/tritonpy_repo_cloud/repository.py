"""Model repositories in clouds."""

from __future__ import annotations

import errno
import logging
import os
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from tritonpy import TritonError, Unavailable
from tritonpy.repository import ModelChanged, ModelListing, Repository, RepositoryContext
from tritonpy_repo_cloud.backoff import RetryBackoff
from tritonpy_repo_cloud.cache.folder import CacheFolder
from tritonpy_repo_cloud.cache.leases import CacheLease
from tritonpy_repo_cloud.cache.manifests import Manifests
from tritonpy_repo_cloud.cache.model_cache import ModelCache
from tritonpy_repo_cloud.completeness import CompletenessRule, MarkerRule, StabilityRule
from tritonpy_repo_cloud.fetcher import DamagedFile, Fetcher
from tritonpy_repo_cloud.listing import CloudListing, check_files, create_listing
from tritonpy_repo_cloud.location import parse_location
from tritonpy_repo_cloud.options import CloudOptions
from tritonpy_repo_cloud.outage import StoreOutage
from tritonpy_repo_cloud.remote_file import RemoteFile, by_model
from tritonpy_repo_cloud.store import ObjectStore
from tritonpy_repo_cloud.store_errors import FailureKind, StoreError

log = logging.getLogger("tritonpy.repository")

_FIRST_PAUSE_S = 5.0
_POLL_INTERVAL_S = 0.2  # minimum between two checks of an incomplete model
_MOUNTS = {
    "s3": "TRITON_AWS_MOUNT_DIRECTORY",
    "gs": "TRITON_GCS_MOUNT_DIRECTORY",
    "as": "TRITON_AZURE_MOUNT_DIRECTORY",
}
Listings = Mapping[str, CloudListing]


class CloudRepository(Repository):
    """Models below a URL that fsspec reads, with a cache that all servers of the machine share.

    While the store cannot be read, the last listing stays valid. If the store is unreachable when
    the server starts, the repository consists of the fully cached models.
    """

    Options = CloudOptions

    def __init__(self, options: CloudOptions, context: RepositoryContext) -> None:
        super().__init__(options, context)
        self._location = parse_location(context.url)
        folder = _cache_folder(options, self._location.scheme, context.cache)
        self._stopped = threading.Event()
        self._store = ObjectStore(self._location, options, self._stopped)
        folder.make()
        self._cache = ModelCache(folder, options.cache_size)
        self._manifests = Manifests(folder, context.url)
        self._fetcher = Fetcher(
            context.url, self._store, self._cache, options.parallel, self._stopped
        )
        self._completeness_rule: CompletenessRule = (
            StabilityRule(options.settle_s)
            if options.complete_when == "stable"
            else MarkerRule(options.marker)
        )
        self._outage = StoreOutage(RetryBackoff(_FIRST_PAUSE_S, options.longest_pause_s))
        self._listings: Listings | None = None
        self._incomplete: dict[str, str] = {}
        self._leases: dict[Path, CacheLease] = {}
        self._guard = threading.Lock()

    def scan(self) -> Mapping[str, ModelListing]:
        if self._outage.is_active(time.monotonic()):
            return self._last_listings()
        try:
            found = self._complete_models()
        except StoreError as failure:
            return self._listings_without_store(failure)
        if self._outage.record_success():
            log.info("model repository '%s' can be read again", self._location.redacted_url)
        self._listings = found
        self._record_scan(found)
        return found

    def find(self, name: str) -> ModelListing | None:
        deadline = None
        while True:
            try:
                files = by_model(self._store.files(name)).get(name)
            except StoreError as failure:
                kept = (
                    self._cached_listing(name) if failure.kind is FailureKind.UNREACHABLE else None
                )
                if kept is None:
                    raise
                log.warning("%s; using '%s' as it was %s", failure.message, name, self._age())
                return kept
            if files is None:
                return None
            listing = create_listing(name, files, self.options.marker)
            self._mark_if_known(listing, files)
            now = time.monotonic()
            deadline = deadline or now + self.options.completion_timeout_s
            reason = self._completeness_rule.incomplete_reason(name, files, now)
            if not reason:
                return listing
            if now >= deadline:
                raise Unavailable(
                    f"model '{name}' is not completely uploaded to "
                    f"'{self._location.redacted_url}': {reason}"
                )
            self._pause()

    def names(self) -> Collection[str]:
        if self._outage.is_active(time.monotonic()):
            return self._last_listings().keys()
        try:
            return by_model(self._store.files()).keys()
        except StoreError as failure:
            return self._listings_without_store(failure).keys()

    def peek(self, listing: ModelListing, path: str) -> bytes | None:
        assert isinstance(listing, CloudListing), "a listing of another repository: this is a bug"  # noqa: S101
        file = next(
            (file for file in listing.remote if file.path == f"{listing.name}/{path}"), None
        )
        if file is None or file.size is None:
            return None
        try:
            return (
                self._fetcher.cached_content(file)
                if self._fetcher.has([file])
                else self._store.read(file, 0, file.size)
            )
        except (TritonError, OSError) as error:
            log.warning("'%s' of model '%s' cannot be read now: %s", path, listing.name, error)
            return None

    def localize(self, listing: ModelListing) -> Path:
        assert isinstance(listing, CloudListing), "a listing of another repository: this is a bug"  # noqa: S101
        check_files(listing)
        for attempt in range(1, self.options.attempts + 1):
            try:
                return self._localize(listing)
            except DamagedFile as damaged:
                self._check_unchanged(listing)
                if attempt == self.options.attempts:
                    raise
                log.warning("%s; fetching it again", damaged.message)
        raise AssertionError("the last attempt returns or raises: this is a bug")

    def release(self, path: Path) -> None:
        with self._guard:
            lease = self._leases.pop(path, None)
        if lease is not None:
            lease.release()

    def interrupt(self) -> None:
        self._stopped.set()

    def close(self) -> None:
        self._stopped.set()
        self._fetcher.close()
        self._cache.close()
        self._store.close()

    def _localize(self, listing: CloudListing) -> Path:
        try:
            lease = self._cache.lease()
            try:
                path = self._fill(lease, listing)
            except BaseException:
                lease.release()
                raise
        except OSError as error:
            raise _disk_failure(listing.name, error) from error
        with self._guard:
            self._leases[path] = lease
        return path

    def _fill(self, lease: CacheLease, listing: CloudListing) -> Path:
        try:
            file_digests, fetched = self._fetcher.fetch(listing.name, listing.remote, lease)
        except StoreError as failure:
            if failure.kind is FailureKind.MISSING:  # removed after it was listed
                self._check_unchanged(listing)
            raise
        if fetched:
            self._check_unchanged(listing)
        start = len(listing.name) + 1
        folder = lease.link_files(
            listing.name, {path[start:]: digest for path, digest in file_digests.items()}
        )
        self._manifests.write(listing.name, list(listing.remote))
        return folder

    def _check_unchanged(self, listing: CloudListing) -> None:
        """Raise `ModelChanged` if the files have changed since they were listed."""
        now = create_listing(
            listing.name,
            by_model(self._store.files(listing.name)).get(listing.name, []),
            self.options.marker,
        )
        if now.fingerprint != listing.fingerprint:
            changed = sorted({path for path, _ in now.files.items() ^ listing.files.items()})
            raise ModelChanged(
                f"model '{listing.name}' changed while it was fetched: {', '.join(changed)}"
            )

    def _complete_models(self) -> Listings:
        """Return the complete models; the first call waits for incomplete ones."""
        deadline = None
        while True:
            found = by_model(self._store.files())
            now = time.monotonic()
            deadline = deadline or now + (
                self.options.completion_timeout_s if self._listings is None else 0.0
            )
            waiting: dict[str, str] = {}
            whole: dict[str, CloudListing] = {}
            for name, files in found.items():
                listing = create_listing(name, files, self.options.marker)
                self._mark_if_known(listing, files)
                if reason := self._completeness_rule.incomplete_reason(name, files, now):
                    waiting[name] = reason
                else:
                    whole[name] = listing
            if not waiting or now >= deadline:
                break
            self._pause()
        self._completeness_rule.retain(found.keys())
        self._log_incomplete(waiting)
        known = self._listings or {}
        return whole | {name: known[name] for name in waiting if name in known}

    def _mark_if_known(self, listing: CloudListing, files: Sequence[RemoteFile]) -> None:
        """Mark a model complete if it is unchanged since any server fetched it."""
        known = self._listings.get(listing.name) if self._listings is not None else None
        if known != listing and self._manifests.read(listing.name) == list(listing.remote):
            self._completeness_rule.mark_complete(listing.name, files)

    def _log_incomplete(self, waiting: dict[str, str]) -> None:
        for name, reason in waiting.items():
            if name not in self._incomplete:
                log.warning(
                    "model '%s' in '%s' is not complete: %s",
                    name,
                    self._location.redacted_url,
                    reason,
                )
        self._incomplete = waiting

    def _listings_without_store(self, failure: StoreError) -> Listings:
        """Return the last known listings, or raise `failure` if there are none."""
        news = self._outage.record_failure(failure, time.monotonic())
        if self._listings is None and failure.kind is FailureKind.UNREACHABLE:
            kept = {
                name: listing
                for name in self._manifests.names()
                if (listing := self._cached_listing(name)) is not None
            }
            if kept:
                log.warning(
                    "%s; using %d models from the cache, as they were %s",
                    failure.message,
                    len(kept),
                    self._age(),
                )
                self._listings = kept
                return kept
        if self._listings is None:
            raise failure
        if news:
            log.error("%s; loaded models continue to serve", failure.message)
        return self._listings

    def _last_listings(self) -> Listings:
        if self._listings is None:
            assert self._outage.failure is not None, "an outage has a failure: this is a bug"  # noqa: S101
            raise self._outage.failure
        return self._listings

    def _cached_listing(self, name: str) -> CloudListing | None:
        """Return the model as last fetched, or None unless all its files are cached."""
        files = self._manifests.read(name)
        return (
            create_listing(name, files, self.options.marker)
            if files and self._fetcher.has(files)
            else None
        )

    def _record_scan(self, found: Listings) -> None:
        try:
            self._manifests.retain(set(found))
        except OSError as error:
            log.warning("the model cache cannot be written: %s", error)

    def _age(self) -> str:
        age_s = self._manifests.age_s()
        if age_s == float("inf"):
            return "when it was fetched"
        hours, minutes = int(age_s // 3600), int(age_s % 3600 // 60)
        return f"{hours} h {minutes} min ago" if hours else f"{minutes} min {int(age_s % 60)} s ago"

    def _pause(self) -> None:
        if self._stopped.wait(max(self.options.settle_s, _POLL_INTERVAL_S)):
            raise Unavailable("Server exiting")


def _cache_folder(options: CloudOptions, scheme: str, default: Path) -> CacheFolder:
    if options.cache_directory is not None:
        return CacheFolder(options.cache_directory)
    named = os.environ.get(_MOUNTS.get(scheme, ""), "")
    return (
        CacheFolder(Path(named))
        if named
        else CacheFolder(default / "repositories", configured=False)
    )


def _disk_failure(name: str, error: OSError) -> TritonError:
    what = os.strerror(error.errno) if error.errno else str(error)
    full = error.errno in {errno.ENOSPC, errno.EDQUOT}
    return Unavailable(
        f"model '{name}' cannot be kept in the model cache: {what}"
        + ("; free disk space" if full else "")
    )
