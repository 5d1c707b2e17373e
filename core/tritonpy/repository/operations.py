"""What is done to one model: it is loaded, loaded anew, or taken out."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tritonpy.api.repo_agent import AgentAction
from tritonpy.config.positions import Positions
from tritonpy.errors import Internal, InvalidArgument, TritonError, Unavailable
from tritonpy.model.loaded import LoadedModel
from tritonpy.repository.changing import Changes, Loaded
from tritonpy.repository.dependencies import is_ensemble
from tritonpy.repository.linking import EnsembleLinks
from tritonpy.repository.load_attempts import LoadAttempt, LoadThreads, ModelLock, unloaded_while_loading
from tritonpy.repository.loader import ModelLoader
from tritonpy.repository.loading import NoVersions, VersionLoading, VersionsFailed
from tritonpy.repository.local import list_model
from tritonpy.repository.overrides import write_override
from tritonpy.repository.prepared import Prepared
from tritonpy.repository.retiring import GRACE_S, Departure, Retiring
from tritonpy.repository.sources import Found
from tritonpy.repository.table import UNLOADED, ModelTable
from tritonpy.repository.wish import Wish
from tritonpy.repository.withdrawing import withdrawn

if TYPE_CHECKING:
    from tritonpy.repository.budget.memory_budget import MemoryBudget
    from tritonpy.repository.budget.patience import Patience

log = logging.getLogger("tritonpy.repository")


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """A model that is to be loaded: how it is called, where it is (None: only in `files`), and what the load request says instead of its files.

    `versions` are to serve beside those that do; where it names none, those that the policy chooses are to serve, and no others.
    An ensemble's member (`as_member`) is left as a client's request made it; a plain load undoes what came with files or for some versions, and
    a configuration once the files have changed.
    `patience` says how long it may wait for memory (None: for nobody who uses any).
    """

    key: str
    name: str
    found: Found | None
    config: str | None = None
    files: Mapping[str, bytes] | None = None
    versions: Sequence[int] = ()
    as_member: bool = False
    patience: Patience | None = None

    @property
    def fingerprint(self) -> str:
        """That of its files."""
        return self.found.listing.fingerprint if self.found is not None else ""


class PollFailed(Internal):
    """What the repository holds of a model cannot be loaded: `detail` says why."""

    def __init__(self, name: str, detail: str) -> None:
        super().__init__(f"failed to load '{name}', failed to poll from model repository: {detail}")
        self.detail = detail


class FilesOutOfReach(PollFailed):
    """A model's files could not be had: that says nothing of them, and the next poll tries again."""


class ModelOperations:
    """Operations on one model wait for each other, those on different models do not. Whoever holds a model's lock takes no other model's.

    An ensemble is only prepared here, and serves as soon as its members let it: see `EnsembleLinks`.
    """

    def __init__(
        self,
        table: ModelTable,
        loader: ModelLoader,
        versions: VersionLoading,
        links: EnsembleLinks,
        retiring: Retiring,
        loaded: Callable[[LoadedModel], None],
        threads: LoadThreads | None = None,
    ) -> None:
        self._threads = threads or LoadThreads()
        self._table = table
        self._loader = loader
        self._versions = versions
        self._links = links
        self._retiring = retiring
        self._tell_loaded = loaded
        self._changes = Changes(table, loader, versions)
        self._failed: dict[str, str] = {}
        self._loaded: dict[str, Loaded] = {}
        self._once_loaded: set[str] = set()
        self._locks: dict[str, ModelLock] = {}
        self._guard = threading.Lock()
        self._stopping = False

    @property
    def memory(self) -> MemoryBudget | None:
        """What every load keeps to; None where memory has no bound."""
        return self._changes.memory

    @memory.setter
    def memory(self, budget: MemoryBudget) -> None:
        self._changes.memory = budget

    def load(self, request: LoadRequest, note: str | Callable[[], str] = "") -> None:
        """Load or reload a model, or prepare an ensemble, unless it did not change. Raises a TritonError, the old versions then serve on.

        `note` ends the line that the log gets of a load that succeeded.
        """
        attempt = LoadAttempt(request.key, request.fingerprint)
        with self._lock_of(request.key).loading(attempt):
            if self._stands(request):
                return
            try:
                self._refuse_when_stopping(request)
                models, departures = self._threads.run(attempt, partial(self._load, request, attempt))
            except TritonError as error:
                self._note_failure(request, attempt, error)
                raise
            self._failed.pop(request.key, None)
            self._once_loaded.add(request.key)
            if self._links.wish(request.key) is None:
                end = note if isinstance(note, str) else note()
                log.info("successfully loaded '%s' in %.2f s%s", request.key, attempt.age_s, end)
        for model in models:
            self._tell_loaded(model)
        self._follow(departures)

    def cancel_slow(self, request: LoadRequest) -> None:
        """Cancel a load of the model that takes long, where its files have changed since."""
        attempt = self._lock_of(request.key).attempt
        if attempt is None or attempt.fingerprint == request.fingerprint or attempt.age_s < self._threads.slow_s:
            return
        reason = "its files changed while it was loading, it is loaded again"
        attempt.cancel(InvalidArgument(f"load failed for model '{request.key}': {reason}\n"))

    def _note_failure(self, request: LoadRequest, attempt: LoadAttempt, error: TritonError) -> None:
        key, text = request.key, error.message.rstrip()
        if attempt.error is not None:
            self._table.stop_loading(key, attempt.cancellation.reason)
            if attempt.cancellation.reason == UNLOADED:
                log.warning("%s: it was unloaded while it was loading", text)
                return
        if not isinstance(error, FilesOutOfReach) and not _lacked_room(error):
            self._failed[key] = request.fingerprint
        if not self._stopping:  # a load that the server's end cut short says nothing of the model
            self._log_failure(key, error)
        self._table.explain(key, text)

    def _log_failure(self, key: str, error: TritonError) -> None:
        stays = "; what is loaded goes on serving" if key in self._loaded else ""
        if isinstance(error, PollFailed):
            log.error("Poll failed for model directory '%s': %s%s", key, error.detail, stays)
        elif isinstance(error.__cause__, VersionsFailed | NoVersions):
            log.info("failed to load '%s'%s", key, stays)
        else:
            log.error("%s%s", error.message.rstrip(), stays)

    def _forget_failure(self, key: str) -> None:
        """Record that what serves is what the files say: a reload that failed was undone."""
        self._failed.pop(key, None)
        self._table.remark_all(key, "")

    def withdraw(self, key: str) -> bool:
        """Take out a model that nobody uses, loads or stands on; False where somebody does, and then nothing happens. Never waits."""
        lock = self._lock_of(key)
        if not lock.try_acquire():
            return False
        try:
            with self._links.standstill():
                departures = [] if self._links.needed(key) else withdrawn(self._table, key, self._drop_one)
        finally:
            lock.release()
        if departures:
            self._follow(departures)
        return bool(departures)

    def _drop_one(self, key: str) -> list[Departure]:
        departures = self._links.drop(key)
        loaded = self._loaded.pop(key, None)
        if loaded is not None:
            departures += loaded.departures(key, self._table.swap(key, {}))
        return departures

    def settle(self, key: str) -> None:
        """Raise InvalidArgument where `key` is an ensemble that cannot serve as it was last wanted."""
        self._links.relink()
        wish = self._links.wish(key)
        text = self._links.settle(key)
        if wish is not None and text:
            self._failed[key] = wish.fingerprint
            log.error("%s", text)
            raise InvalidArgument(f"load failed for model '{key}': {text}\n")

    def take_out(self, names: Mapping[str, str]) -> None:
        """Let no new request reach the models, plain names by qualified ones; returns at once, what is in flight finishes."""
        departures: list[Departure] = []
        for key, name in names.items():
            with self._lock_of(key).unloading(unloaded_while_loading(name), UNLOADED):
                departures += self._forget(key, name)
        self._follow(departures)

    def take_out_some(self, key: str, name: str, versions: Collection[int]) -> bool:
        """Do the same with some versions of a model, until its next plain load; False where they were all that it had."""
        with self._lock_of(key).unloading(unloaded_while_loading(name), UNLOADED):
            others = self._others(key, versions)
            departures = self._narrow(key, versions) if others else self._forget(key, name)
        self._follow(departures)
        return others

    def _others(self, key: str, versions: Collection[int]) -> bool:
        wish = self._links.wish(key)
        wanted = [model.version for model in self._table.ready(key)] if wish is None else wish.prepared.chosen()[0]
        return not wanted or any(version not in versions for version in wanted)

    def _narrow(self, key: str, versions: Collection[int]) -> Sequence[Departure]:
        with self._guard:  # from here on `take_out_all` sees it
            loaded = self._loaded.get(key)
            if loaded is None:
                self._links.narrow(key, versions)
                return ()
            staying = {model.version: model for model in self._table.ready(key) if model.version not in versions}
            origins = {version: loaded.origins[version] for version in staying}
            self._loaded[key] = Loaded(loaded.fingerprint, overridden=True, origins=origins)
            old = self._table.swap(key, staying)
        self._changes.keep(loaded, list(staying.values()))
        gone = [model for model in old if model.version not in staying]
        return loaded.departures(key, gone, origins.values())

    def _forget(self, key: str, name: str) -> Sequence[Departure]:
        departures = self._drop_one(key)
        self._links.forget(key)
        self._table.dismiss(key, name)
        return departures

    def wanted(self) -> list[str]:
        """Return the models that serve or load, and the ensembles that would serve."""
        with self._guard:
            loading = [key for key, lock in self._locks.items() if lock.attempt is not None]
        return [*self._loaded, *self._links.wanted(), *loading]

    def is_changed(self, request: LoadRequest) -> bool:
        """Say whether the model is to be loaded because its files are others than those that it was loaded from, or failed to."""
        if self._failed.get(request.key) == request.fingerprint:
            return False  # it failed as it is now: not again before a file changes
        attempt = self._lock_of(request.key).attempt
        if attempt is not None and attempt.fingerprint == request.fingerprint:
            return False  # it is loading
        standing = self._standing(request.key)
        if standing is not None and standing.fingerprint == request.fingerprint:
            self._forget_failure(request.key)
            return False
        return True

    def stop_loading(self) -> None:
        """Load nothing more: what has not begun fails, and what is loading now is dropped when it is done."""
        with self._guard:
            self._stopping = True
            attempts = [lock.attempt for lock in self._locks.values()]
        for attempt in attempts:
            if attempt is not None:
                attempt.cancel(InvalidArgument(f"load failed for model '{attempt.key}': Server exiting\n"))

    def take_out_all(self) -> None:
        """Take out every model, after `stop_loading`; canceled loads have a moment to end."""
        departures = self._links.close()
        with self._guard:
            loaded, self._loaded = self._loaded, {}
        for key, entry in loaded.items():
            departures += entry.departures(key, self._table.swap(key, {}))
        self._retiring.retire(*departures)
        self._threads.join(GRACE_S)

    def _follow(self, departures: Sequence[Departure]) -> None:
        """Let the ensembles follow what was done, and retire what it left."""
        try:
            self._links.relink()
        finally:
            self._retiring.retire(*departures)

    def _stands(self, request: LoadRequest) -> bool:
        """Say whether there is nothing to do."""
        standing = self._standing(request.key)
        if (
            request.config is not None
            or request.versions
            or standing is None
            or standing.fingerprint != request.fingerprint
        ):
            return False
        return request.as_member or not standing.overridden

    def _standing(self, key: str) -> Loaded | Wish | None:
        return self._loaded.get(key) or self._links.wish(key)

    def _load(self, request: LoadRequest, attempt: LoadAttempt) -> tuple[Sequence[LoadedModel], Sequence[Departure]]:
        """Return the versions that serve from now on, and what is to be retired."""
        attempt.record(partial(self._table.announce, request.key))
        request, prepared = self._prepare(request)
        prepared.attempt = attempt
        attempt.record(partial(self._table.retract, request.key))
        attempt.record(partial(self._table.introduce, request.key, request.name))
        prepared.named = request.versions
        overridden = self._is_temporary(request)
        if is_ensemble(prepared.config):
            if request.versions:
                self._versions.choose(prepared)
                prepared.named = [*request.versions, *(model.version for model in self._table.ready(request.key))]
            return (), self._want(attempt, Wish(prepared, request.fingerprint, overridden))
        models, departures = self._load_versions(request, prepared, overridden)
        prepared.agents.tell(AgentAction.LOAD_COMPLETE)
        return models, departures

    def _is_temporary(self, request: LoadRequest) -> bool:
        """Return whether the next plain load undoes this one though the model's files stay the same.

        As in Triton a configuration stays until the files change, unless it came with files or with the first load of the model.
        """
        if request.files or request.versions:
            return True
        return request.config is not None and request.key not in self._once_loaded

    def _prepare(self, request: LoadRequest) -> tuple[LoadRequest, Prepared]:
        """Return the model on its way, and the request for it as it was when its files were taken over."""
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
            assert request.found is not None, "a load without files has a model on disk: this is a bug"  # noqa: S101
            found, path = request.found.localize()
            release = partial(found.repository.release, path)
            prepared = self._loader.prepare(found.listing, path, request.config, release, found.namespace)
            return replace(request, found=found), prepared
        except Exception as error:
            if isinstance(error, Unavailable):
                raise FilesOutOfReach(request.name, error.message) from error
            text = _failure("", error).message
            if request.found is not None:
                listing = request.found.listing
                text += self._loader.hint(text, listing, path if path is not None else listing.path)
            raise PollFailed(request.name, text) from error

    def _want(self, attempt: LoadAttempt, wish: Wish) -> list[Departure]:
        departures = []
        try:
            with attempt.committing():
                loaded = self._loaded.pop(attempt.key, None)
                if loaded is not None:  # its files made it an ensemble
                    departures += loaded.departures(attempt.key, self._table.swap(attempt.key, {}))
                self._links.want(attempt.key, wish)
        except TritonError:
            wish.give_up()
            raise
        return departures

    def _load_versions(
        self, request: LoadRequest, prepared: Prepared, overridden: bool
    ) -> tuple[Sequence[LoadedModel], Sequence[Departure]]:
        key, before = request.key, self._loaded.get(request.key)
        attempt = prepared.attempt
        assert attempt is not None, "it was set when the model was prepared: this is a bug"  # noqa: S101
        try:
            change = self._changes.prepare(prepared, before, request.patience)
            try:
                with attempt.committing(), self._guard:  # from here on `take_out_all` sees it
                    if self._stopping:
                        raise Unavailable("Server exiting")
                    self._loaded[key] = entry = Loaded(request.fingerprint, overridden, change.origins(before))
                    departures = self._links.drop(key)  # its files made it another model
                    old = self._table.swap(key, change.models)
            except TritonError:
                change.drop()
                raise
        except Exception as error:
            raise self._failed_load(key, prepared, error) from error
        self._links.forget(key)
        if before is not None:
            gone = [model for model in old if model is not change.models.get(model.version)]
            departures += before.departures(key, gone, entry.origins.values())
        self._changes.make(change, before)
        prepared.positions = Positions()  # of no use to a model that serves, and kilobytes for each
        return list(change.built.values()), departures

    def _failed_load(self, key: str, prepared: Prepared, error: Exception) -> InvalidArgument:
        prepared.agents.tell(AgentAction.LOAD_FAIL)
        prepared.release()
        if prepared.account is not None:
            prepared.account.close()
        what = f"load failed for model '{key}': "
        text = _failure(what, error).message
        if prepared.attempt is not None:
            prepared.attempt.record(partial(self._links.failed, key, prepared.name, text.removeprefix(what)))
        # Triton's code for this is INVALID_ARG, whatever went wrong in the backend
        return InvalidArgument(f"{text}\n")

    def _refuse_when_stopping(self, request: LoadRequest) -> None:
        if self._stopping:
            raise FilesOutOfReach(request.name, "Server exiting")

    def _lock_of(self, key: str) -> ModelLock:
        with self._guard:
            return self._locks.setdefault(key, ModelLock())


def _lacked_room(error: TritonError) -> bool:
    """Say whether memory was missing: that says nothing of the files, and may be otherwise soon."""
    if not isinstance(error.__cause__, Unavailable):
        return False
    from tritonpy.repository.budget.no_room import NoRoom

    return isinstance(error.__cause__, NoRoom)


def _failure(what: str, error: Exception) -> TritonError:
    if isinstance(error, TritonError):
        return Internal(f"{what}{error.message}")
    if isinstance(error, OSError) and error.strerror:  # the system says what is wrong, a traceback would not add to it
        return Internal(f"{what}{error.strerror}" + (f": '{error.filename}'" if error.filename else ""))
    log.error("%s%s", what, error, exc_info=error)
    return Internal(f"{what}{type(error).__name__}: {error}")
