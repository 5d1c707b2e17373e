"""Operations on single models: loading, reloading and unloading."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tritonpy.api.repo_agent import AgentAction
from tritonpy.model.loaded_model import LoadedModel
from tritonpy.repository.draining import GRACE_S, Drainer, DrainJob
from tritonpy.repository.ensemble_reconciler import EnsembleReconciler
from tritonpy.repository.ensemble_spec import EnsembleSpec
from tritonpy.repository.load_attempts import (
    LoadAttempt,
    LoadThreads,
    ModelLock,
    unloaded_while_loading,
)
from tritonpy.repository.load_change import LoadChangeManager, LoadedVersions
from tritonpy.repository.local import list_model
from tritonpy.repository.memory_reservation import InsufficientCapacity
from tritonpy.repository.model_loader import ModelLoader
from tritonpy.repository.model_table import UNLOADED, ModelTable
from tritonpy.repository.overrides import write_override
from tritonpy.repository.prepared_model import PreparedModel
from tritonpy.repository.sources import FoundModel
from tritonpy.repository.version_loader import NoVersions, VersionLoader, VersionsFailed
from tritonpy_config.dependencies import is_ensemble
from tritonpy_config.problem import Positions
from tritonpy_types.errors import Internal, InvalidArgument, TritonError, Unavailable

if TYPE_CHECKING:
    from tritonpy.repository.memory_reservation import LoadDeadline
    from tritonpy.repository.residency import MemoryBudget

log = logging.getLogger("tritonpy.repository")


def remove_if_idle(
    table: ModelTable, key: str, remove: Callable[[str], Sequence[DrainJob]]
) -> Sequence[DrainJob]:
    """Return the jobs from `remove`, or nothing if a version is in use or none is ready.

    The locks of all versions are held meanwhile, so that no version can accept a request between
    the check and the removal. Later requests are looked up again.
    """
    models = table.ready(key)
    with ExitStack() as held:
        for model in models:
            held.enter_context(model.dispatcher.lock)
        if not models or any(model.is_in_use() for model in models):
            return ()
        for model in models:
            model.stop_accepting()
        return remove(key)


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """A model to load: its names, its files, and what a client's request overrides.

    `found` is None for a model that exists only in `files`. `versions` will serve in addition to
    those that already do. If it is empty, exactly the versions that the policy selects will serve.

    With `as_member`, the overrides of an earlier request are kept. Otherwise the load undoes files
    and versions of that request, and its configuration if the model's files have changed.

    `deadline` limits the wait for memory. If it is None, the load does not wait for models in use.
    """

    key: str
    name: str
    found: FoundModel | None
    config: str | None = None
    files: Mapping[str, bytes] | None = None
    versions: Sequence[int] = ()
    as_member: bool = False
    deadline: LoadDeadline | None = None

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the model's files."""
        return self.found.listing.fingerprint if self.found is not None else ""


class PollFailed(Internal):
    """The model's files cannot be loaded; `detail` says why."""

    def __init__(self, name: str, detail: str) -> None:
        super().__init__(f"failed to load '{name}', failed to poll from model repository: {detail}")
        self.detail = detail


class FilesUnavailable(PollFailed):
    """The model's files could not be fetched; the next poll retries."""


class ModelOperations:
    """Loads and unloads models. Operations on one model run in order, others run concurrently.

    A thread that holds the lock of one model never takes that of another. Ensembles are only
    prepared here. They serve as soon as their members allow it; see `EnsembleReconciler`.
    """

    def __init__(
        self,
        table: ModelTable,
        loader: ModelLoader,
        version_loader: VersionLoader,
        ensembles: EnsembleReconciler,
        drainer: Drainer,
        loaded: Callable[[LoadedModel], None],
        threads: LoadThreads | None = None,
    ) -> None:
        self._threads = threads or LoadThreads()
        self._table = table
        self._loader = loader
        self._version_loader = version_loader
        self._ensembles = ensembles
        self._drainer = drainer
        self._notify_loaded = loaded
        self._change_manager = LoadChangeManager(table, loader, version_loader)
        self._failed: dict[str, str] = {}
        self._loaded: dict[str, LoadedVersions] = {}
        self._ever_loaded: set[str] = set()
        self._locks: dict[str, ModelLock] = {}
        self._guard = threading.Lock()
        self._stopping = False

    @property
    def memory(self) -> MemoryBudget | None:
        """The memory budget for all loads; None if memory is not limited."""
        return self._change_manager.memory

    @memory.setter
    def memory(self, budget: MemoryBudget | None) -> None:
        self._change_manager.memory = budget

    def load(self, request: LoadRequest, note: str | Callable[[], str] = "") -> None:
        """Load or reload a model, or prepare an ensemble, unless it is unchanged.

        `note` ends the log line of a successful load. Raises a `TritonError`; the previous versions
        then keep serving.
        """
        attempt = LoadAttempt(request.key, request.fingerprint)
        with self._lock_of(request.key).loading(attempt):
            if self._is_current(request):
                return
            try:
                self._check_not_stopping(request)
                models, jobs = self._threads.run(attempt, partial(self._load, request, attempt))
            except TritonError as error:
                self._record_failure(request, attempt, error)
                raise
            self._failed.pop(request.key, None)
            self._ever_loaded.add(request.key)
            if self._ensembles.spec(request.key) is None:
                end = note if isinstance(note, str) else note()
                log.info("successfully loaded '%s' in %.2f s%s", request.key, attempt.age_s, end)
        for model in models:
            self._notify_loaded(model)
        self._finish_change(jobs)

    def cancel_slow_load(self, request: LoadRequest) -> None:
        """Cancel a slow load of the model if its files have changed since."""
        attempt = self._lock_of(request.key).attempt
        if (
            attempt is None
            or attempt.fingerprint == request.fingerprint
            or attempt.age_s < self._threads.slow_s
        ):
            return
        reason = "its files changed while it was loading, so it is loaded again"
        attempt.cancel(InvalidArgument(f"load failed for model '{request.key}': {reason}\n"))

    def _record_failure(
        self, request: LoadRequest, attempt: LoadAttempt, error: TritonError
    ) -> None:
        key, text = request.key, error.message.rstrip()
        if attempt.error is not None:
            self._table.cancel_loading(key, attempt.cancellation.reason)
            if attempt.cancellation.reason == UNLOADED:
                log.warning("%s: it was unloaded while it was loading", text)
                return
        if not isinstance(error, FilesUnavailable) and not _is_capacity_error(error):
            self._failed[key] = request.fingerprint
        # A load that the server's exit interrupted says nothing about the model.
        if not self._stopping:
            self._log_failure(key, error)
        self._table.set_model_reason(key, text)

    def _log_failure(self, key: str, error: TritonError) -> None:
        note = "; loaded versions keep serving" if key in self._loaded else ""
        if isinstance(error, PollFailed):
            log.error("Poll failed for model directory '%s': %s%s", key, error.detail, note)
        elif isinstance(error.__cause__, VersionsFailed | NoVersions):
            log.info("failed to load '%s'%s", key, note)
        else:
            log.error("%s%s", error.message.rstrip(), note)

    def _clear_failure(self, key: str) -> None:
        """Record that the model matches its files again after a failed reload."""
        self._failed.pop(key, None)
        self._table.set_remarks(key, "")

    def unload_if_idle(self, key: str) -> bool:
        """Unload a model unless it is in use, loading or a member of an ensemble; never waits.

        Returns whether it was unloaded.
        """
        lock = self._lock_of(key)
        if not lock.try_acquire():
            return False
        try:
            with self._ensembles.locked():
                jobs = (
                    []
                    if self._ensembles.is_member(key)
                    else remove_if_idle(self._table, key, self._remove)
                )
        finally:
            lock.release()
        if jobs:
            self._finish_change(jobs)
        return bool(jobs)

    def _remove(self, key: str) -> list[DrainJob]:
        jobs = self._ensembles.remove(key)
        loaded = self._loaded.pop(key, None)
        if loaded is not None:
            jobs += loaded.drain_jobs(key, self._table.swap(key, {}))
        return jobs

    def settle_ensemble(self, key: str) -> None:
        """Raise `InvalidArgument` if the newest spec of the ensemble `key` cannot serve."""
        self._ensembles.reconcile()
        spec = self._ensembles.spec(key)
        text = self._ensembles.revert_if_failed(key)
        if spec is not None and text:
            self._failed[key] = spec.fingerprint
            log.error("%s", text)
            raise InvalidArgument(f"load failed for model '{key}': {text}\n")

    def unload(self, names: Mapping[str, str]) -> None:
        """Stop accepting requests for the models; return while requests in flight finish.

        `names` maps qualified names to plain names.
        """
        jobs: list[DrainJob] = []
        for key, name in names.items():
            with self._lock_of(key).unloading(unloaded_while_loading(name), UNLOADED):
                jobs += self._unload(key, name)
        self._finish_change(jobs)

    def unload_versions(self, key: str, name: str, versions: Collection[int]) -> bool:
        """Unload some versions of a model until its next plain load.

        Returns False if the model has no other versions; the whole model is then unloaded.
        """
        with self._lock_of(key).unloading(unloaded_while_loading(name), UNLOADED):
            has_others = self._has_other_versions(key, versions)
            jobs = self._unload_versions(key, versions) if has_others else self._unload(key, name)
        self._finish_change(jobs)
        return has_others

    def _has_other_versions(self, key: str, versions: Collection[int]) -> bool:
        spec = self._ensembles.spec(key)
        selected = (
            [model.version for model in self._table.ready(key)]
            if spec is None
            else spec.prepared.selected_versions()[0]
        )
        return not selected or any(version not in versions for version in selected)

    def _unload_versions(self, key: str, versions: Collection[int]) -> Sequence[DrainJob]:
        with self._guard:  # `unload_all` sees the change from here on
            loaded = self._loaded.get(key)
            if loaded is None:
                self._ensembles.remove_versions(key, versions)
                return ()
            remaining = {
                model.version: model
                for model in self._table.ready(key)
                if model.version not in versions
            }
            origins = {version: loaded.origins[version] for version in remaining}
            self._loaded[key] = LoadedVersions(loaded.fingerprint, overridden=True, origins=origins)
            old = self._table.swap(key, remaining)
        self._change_manager.keep(loaded, list(remaining.values()))
        removed = [model for model in old if model.version not in remaining]
        return loaded.drain_jobs(key, removed, origins.values())

    def _unload(self, key: str, name: str) -> Sequence[DrainJob]:
        jobs = self._remove(key)
        self._ensembles.clear_load_failure(key)
        self._table.unregister_name(key, name)
        return jobs

    def active_models(self) -> list[str]:
        """Return the models that serve or load, and the requested ensembles."""
        with self._guard:
            loading = [key for key, lock in self._locks.items() if lock.attempt is not None]
        return [*self._loaded, *self._ensembles.keys(), *loading]

    def is_changed(self, request: LoadRequest) -> bool:
        """Return whether the model's files differ from those of its last load or failed load."""
        if self._failed.get(request.key) == request.fingerprint:
            return False  # retried only when a file changes
        attempt = self._lock_of(request.key).attempt
        if attempt is not None and attempt.fingerprint == request.fingerprint:
            return False  # already loading
        current = self._current(request.key)
        if current is not None and current.fingerprint == request.fingerprint:
            self._clear_failure(request.key)
            return False
        return True

    def stop_loading(self) -> None:
        """Reject further loads, and cancel those in progress."""
        with self._guard:
            self._stopping = True
            attempts = [lock.attempt for lock in self._locks.values()]
        for attempt in attempts:
            if attempt is not None:
                attempt.cancel(
                    InvalidArgument(f"load failed for model '{attempt.key}': Server exiting\n")
                )

    def unload_all(self) -> None:
        """Unload every model after `stop_loading`; canceled loads get `GRACE_S` to end."""
        jobs = self._ensembles.close()
        with self._guard:
            loaded, self._loaded = self._loaded, {}
        for key, entry in loaded.items():
            jobs += entry.drain_jobs(key, self._table.swap(key, {}))
        self._drainer.drain(*jobs)
        self._threads.join(GRACE_S)

    def _finish_change(self, jobs: Sequence[DrainJob]) -> None:
        """Reconcile the ensembles, and drain what was replaced."""
        try:
            self._ensembles.reconcile()
        finally:
            self._drainer.drain(*jobs)

    def _is_current(self, request: LoadRequest) -> bool:
        """Return whether the model already is as requested."""
        current = self._current(request.key)
        if (
            request.config is not None
            or request.versions
            or current is None
            or current.fingerprint != request.fingerprint
        ):
            return False
        return request.as_member or not current.overridden

    def _current(self, key: str) -> LoadedVersions | EnsembleSpec | None:
        return self._loaded.get(key) or self._ensembles.spec(key)

    def _load(
        self, request: LoadRequest, attempt: LoadAttempt
    ) -> tuple[Sequence[LoadedModel], Sequence[DrainJob]]:
        """Return the newly loaded versions and the jobs that drain what they replace."""
        attempt.record(partial(self._table.mark_loading, request.key))
        request, prepared = self._prepare(request)
        prepared.attempt = attempt
        attempt.record(partial(self._table.clear_placeholder, request.key))
        attempt.record(partial(self._table.register_name, request.key, request.name))
        prepared.requested_versions = request.versions
        overridden = self._is_temporary(request)
        if is_ensemble(prepared.config):
            if request.versions:
                self._version_loader.choose(prepared)
                prepared.requested_versions = [
                    *request.versions,
                    *(model.version for model in self._table.ready(request.key)),
                ]
            return (), self._set_ensemble(
                attempt, EnsembleSpec(prepared, request.fingerprint, overridden)
            )
        models, jobs = self._load_versions(request, prepared, overridden)
        prepared.agents.notify(AgentAction.LOAD_COMPLETE)
        return models, jobs

    def _is_temporary(self, request: LoadRequest) -> bool:
        """Return whether the next plain load undoes this one even if the files are unchanged.

        As in Triton, a configuration stays until the files change, unless it came with files or
        with the first load of the model.
        """
        if request.files or request.versions:
            return True
        return request.config is not None and request.key not in self._ever_loaded

    def _prepare(self, request: LoadRequest) -> tuple[LoadRequest, PreparedModel]:
        """Return the prepared model, and the request with the listing of its files.

        The listing is the one at the time when the files were read.
        """
        path: Path | None = None
        try:
            if request.files:
                folder = write_override(request.name, request.files)
                path = Path(folder.name)
                listing = list_model(request.name, path)
                prepared = self._loader.prepare(
                    listing, path, request.config, folder.cleanup, files_from_request=True
                )  # fmt: skip
                return request, prepared
            assert request.found is not None, (  # noqa: S101
                "a load without files has a model on disk: this is a bug"
            )
            found, path = request.found.localize()
            release = partial(found.repository.release, path)
            prepared = self._loader.prepare(
                found.listing, path, request.config, release, found.namespace
            )
            return replace(request, found=found), prepared
        except Exception as error:
            if isinstance(error, Unavailable):
                raise FilesUnavailable(request.name, error.message) from error
            text = _failure("", error).message
            if request.found is not None:
                listing = request.found.listing
                text += self._loader.hint(text, listing, path if path is not None else listing.path)
            raise PollFailed(request.name, text) from error

    def _set_ensemble(self, attempt: LoadAttempt, spec: EnsembleSpec) -> list[DrainJob]:
        jobs = []
        try:
            with attempt.committing():
                loaded = self._loaded.pop(attempt.key, None)
                if loaded is not None:  # the model became an ensemble
                    jobs += loaded.drain_jobs(attempt.key, self._table.swap(attempt.key, {}))
                self._ensembles.set_spec(attempt.key, spec)
        except TritonError:
            spec.discard()
            raise
        return jobs

    def _load_versions(
        self, request: LoadRequest, prepared: PreparedModel, overridden: bool
    ) -> tuple[Sequence[LoadedModel], Sequence[DrainJob]]:
        key, before = request.key, self._loaded.get(request.key)
        attempt = prepared.attempt
        assert attempt is not None, "it was set when the model was prepared: this is a bug"  # noqa: S101
        try:
            change = self._change_manager.prepare(prepared, before, request.deadline)
            try:
                with attempt.committing(), self._guard:  # `unload_all` sees the change from here on
                    if self._stopping:
                        raise Unavailable("Server exiting")
                    self._loaded[key] = entry = LoadedVersions(
                        request.fingerprint, overridden, change.origins(before)
                    )
                    jobs = self._ensembles.remove(key)  # the ensemble became a model
                    old = self._table.swap(key, change.models)
            except TritonError:
                change.discard()
                raise
        except Exception as error:
            raise self._failed_load(key, prepared, error) from error
        self._ensembles.clear_load_failure(key)
        if before is not None:
            removed = [model for model in old if model is not change.models.get(model.version)]
            jobs += before.drain_jobs(key, removed, entry.origins.values())
        self._change_manager.apply(change, before)
        prepared.positions = Positions()  # not needed any more, and kilobytes per model
        return list(change.built.values()), jobs

    def _failed_load(self, key: str, prepared: PreparedModel, error: Exception) -> InvalidArgument:
        prepared.agents.notify(AgentAction.LOAD_FAIL)
        prepared.release()
        if prepared.reservation is not None:
            prepared.reservation.close()
        prefix = f"load failed for model '{key}': "
        text = _failure(prefix, error).message
        if prepared.attempt is not None:
            prepared.attempt.record(
                partial(
                    self._ensembles.record_load_failure,
                    key,
                    prepared.name,
                    text.removeprefix(prefix),
                )
            )
        # Triton uses INVALID_ARG for every failed load
        return InvalidArgument(f"{text}\n")

    def _check_not_stopping(self, request: LoadRequest) -> None:
        if self._stopping:
            raise FilesUnavailable(request.name, "Server exiting")

    def _lock_of(self, key: str) -> ModelLock:
        with self._guard:
            return self._locks.setdefault(key, ModelLock())


def _is_capacity_error(error: TritonError) -> bool:
    """Return whether memory was missing, which says nothing about the files and may change soon."""
    return isinstance(error.__cause__, InsufficientCapacity)


def _failure(prefix: str, error: Exception) -> TritonError:
    if isinstance(error, TritonError):
        return Internal(f"{prefix}{error.message}")
    # The operating system's text is enough, a traceback adds nothing.
    if isinstance(error, OSError) and error.strerror:
        return Internal(
            f"{prefix}{error.strerror}" + (f": '{error.filename}'" if error.filename else "")
        )
    log.error("%s%s", prefix, error, exc_info=error)
    return Internal(f"{prefix}{type(error).__name__}: {error}")
