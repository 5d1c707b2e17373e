"""Loads, reloads and unloads models: what clients, the start of the server and polls ask for."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from tritonpy.api.engine import ModelIndex
from tritonpy.api.repository import Repository
from tritonpy.config.qualified import qualified
from tritonpy.config.server.memory_settings import MemorySettings
from tritonpy.errors import Internal, InvalidArgument, TritonError
from tritonpy.model.loaded import LoadedModel
from tritonpy.repository.lazy.choice import lazy_choice
from tritonpy.repository.linking import EnsembleLinks
from tritonpy.repository.load_attempts import SLOW_S, LoadThreads, load_batch
from tritonpy.repository.loader import ModelLoader
from tritonpy.repository.loading import VersionLoading
from tritonpy.repository.operations import LoadRequest, ModelOperations
from tritonpy.repository.overrides import check_file_names
from tritonpy.repository.retiring import Retiring
from tritonpy.repository.sources import DUPLICATE, Scan, Sources
from tritonpy.repository.table import ModelTable, State

if TYPE_CHECKING:
    from tritonpy.repository.budget.memory_budget import MemoryBudget
    from tritonpy.repository.budget.patience import Patience
    from tritonpy.repository.budget.report import MemoryReport
    from tritonpy.repository.lazy.lazy_loading import LazyLoading

NO_BOUND = MemorySettings()
GONE = "model is no longer in a repository"
log = logging.getLogger("tritonpy.repository")

_SLOW_AT_START_S = 60.0  # a load that takes longer lets the next one begin, though it is one more than `threads` says
_SPACES = " \t\n\r\v\f"
_LOOK_S = 0.05  # between two looks at whether sequences live


@dataclass(frozen=True, slots=True)
class ModelEvents:
    """Whom to tell that a version became ready, or is gone."""

    loaded: Callable[[LoadedModel], None]
    unloaded: Callable[[LoadedModel], None]


class RepositoryManager:
    """Operations on one model wait for each other; different models load at the same time, `threads` at once.

    With an ensemble, what it stands on is loaded too. Models are called by their qualified names here, and by their plain ones by clients.
    """

    def __init__(
        self,
        repositories: Sequence[Repository],
        table: ModelTable,
        loader: ModelLoader,
        events: ModelEvents,
        threads: int = 4,
        retries: int = 0,
        namespaced: bool = False,
        memory: MemorySettings = NO_BOUND,
        load_timeout_s: float = 0.0,
    ) -> None:
        versions = VersionLoading(table, loader, retries)
        self._sources = Sources(repositories, namespaced)
        self._table = table
        self._threads = threads
        self._loader = loader
        self._events = events
        self._retiring = Retiring(table, self._unloaded)
        self._links = EnsembleLinks(table, versions, self._retiring, events.loaded)
        load_threads = LoadThreads(load_timeout_s)
        self._models = ModelOperations(
            table, loader, versions, self._links, self._retiring, events.loaded, load_threads
        )
        self._names: dict[str, str] = {}
        self._asked: set[str] = set()
        self._guard = threading.Lock()
        self._memory = memory
        self._lazy: LazyLoading | None = None
        self._report: MemoryReport
        if memory != NO_BOUND:
            self._lazily()

    def load_all(self, names: Collection[str] | None = None) -> dict[str, TritonError]:
        """Load `names` (None: every model there is) and return what failed, by name. Raises Unavailable for an unreadable repository."""
        found = self._sources.scan()
        wanted = found.names if names is None else [key for name in sorted(names) for key in found.called(name)]
        failures: dict[str, TritonError] = {}
        done = 0

        def progress() -> str:
            nonlocal done
            with self._guard:
                done += 1
                return f" ({done} of {len(wanted)}{f', {len(failures)} failed' if failures else ''})"

        def note_failure(key: str, error: TritonError | None) -> None:
            nonlocal done
            if error is not None:
                with self._guard:
                    done += 1
                    failures[key] = error  # its text is in the log already

        def load(key: str) -> None:
            note_failure(key, self._try_load(key, found, note=progress))

        self._ask_for(wanted)
        wanted = self._eager(wanted, found, failures)
        self._at_once(load, wanted)
        self._load_members(wanted)
        for key in wanted:
            if key not in failures and self._links.member_names(key):
                note_failure(key, self._settled(key))
        return failures

    def load(
        self,
        name: str,
        config: str | None = None,
        files: Mapping[str, bytes] | None = None,
        versions: Sequence[int] = (),
    ) -> None:
        """Load or reload one model, and what it stands on; returns when it serves.

        With `versions` those are loaded, whatever the version policy says, and what serves beside them goes on as it is, until the next load without.
        Raises a TritonError with the reason, the old versions then serve on. Where models have namespaces, all of this name are loaded.
        """
        _check_name(name)
        if files and config is None:
            raise InvalidArgument("Load parameter 'config' must be specified for model file override")
        check_file_names(files or ())
        found = self._sources.look_up(name)
        if not found.models and not files:
            raise _not_found(name, found)
        if files:
            wanted = [LoadRequest(name, name, found.models.get(name), config, files, versions)]
        else:
            wanted = [LoadRequest(key, name, model, config, None, versions) for key, model in found.models.items()]
        keys = [one.key for one in wanted]
        self._ask_for(keys)
        for one in wanted:
            self._note(one)
        errors = [error for one in wanted if (error := self._tried(one)) is not None]
        self._load_members(keys)
        errors += [error for key in keys if (error := self._settled(key)) is not None]
        if errors:
            raise errors[0] if len(errors) == 1 else InvalidArgument("".join(error.message for error in errors))

    def unload(self, name: str, unload_dependents: bool = False, versions: Sequence[int] = ()) -> None:
        """Let no new request reach the model; returns at once, what is in flight finishes. An unknown name is no error, as in Triton.

        With `versions` only those are unloaded, until the next load without; with the last of them the model is.
        With `unload_dependents`, what an ensemble stands on is unloaded too, unless it was asked for itself or another ensemble stands on it.
        """
        self._unload({key for key, its in list(self._names.items()) if its == name}, unload_dependents, versions)

    def poll(self) -> None:
        """Make the served models those on disk: load what is new or changed, unload what is gone."""
        found = self._sources.scan()
        changed = [
            key
            for key, model in found.models.items()
            if self._models.is_changed(LoadRequest(key, model.listing.name, model))
            and not (self._lazy is not None and self._lazy.is_current(key, model))
        ]
        gone = {key for key in (*self._models.wanted(), *self._listed()) if key not in found.models}
        for key in sorted(gone):
            log.info("'%s': %s", key, DUPLICATE if key in found.duplicates else GONE)
        self._unload(gone)
        changed = self._eager(changed, found, {})
        if changed:
            for key in changed:
                self._models.cancel_slow(LoadRequest(key, found.models[key].listing.name, found.models[key]))
            load_batch(partial(self._reload, found=found), changed, self._threads, SLOW_S, settle=False)
            for key in changed:
                self._explain(key, self._settled(key))

    def _reload(self, key: str, found: Scan) -> None:
        self._explain(key, self._try_load(key, found))

    def _explain(self, key: str, error: TritonError | None) -> None:
        """Let the index show why a model that serves on did not follow its files: a poll has no caller that would get the error."""
        if error is not None:
            self._table.remark_all(
                key, f"serves as it was loaded before, the last load failed: {error.message.rstrip()}"
            )

    def memory(self) -> dict[str, Any]:
        """Return what is told of memory and of lazy models; there is something to tell where the server's configuration speaks of them."""
        self._lazily()
        return self._report.plain()

    def index(self, ready: bool) -> list[ModelIndex]:
        """List every model of the repositories and every one that is loaded."""
        held = self._sources.names()
        found = {qualified(*model): model[1] for model in sorted(held)}
        twice = {qualified(*model) for model, count in held.items() if count > 1}
        found |= {key: self._names[key] for key, _, _ in self._table.records() if key not in found}
        lines: list[ModelIndex] = []
        for key, name in found.items():
            if key in twice:
                lines.append(ModelIndex(name, "", State.UNAVAILABLE.value, DUPLICATE))
            else:
                lines += self._table.index(key, name)
        return [line for line in lines if not ready or line.state == State.READY.value]

    def wait_for_sequences(self, timeout_s: float) -> None:
        """Let no new sequence begin, and wait until those that live have ended, but no longer than `timeout_s`."""
        deadline = time.monotonic() + timeout_s
        while any([model.dispatcher.wind_down() for model in self._table.all_ready()]) and time.monotonic() < deadline:
            time.sleep(_LOOK_S)

    def in_flight(self) -> list[tuple[str, int, int]]:
        """Return name, version and number of open requests of every ready version that has some."""
        return [(model.name, model.version, model.open) for model in self._table.all_ready() if model.open]

    def stop(self, timeout_s: float) -> bool:
        """Unload everything, waiting `timeout_s` for requests in flight; False when some had to be given up."""
        self.stop_loading()
        self._models.take_out_all()
        return self._retiring.wait(timeout_s)

    def stop_loading(self) -> None:
        """Load nothing more: what has not begun fails, and what is loading now is dropped when it is done."""
        self._models.stop_loading()
        if self._lazy is not None:
            self._lazy.cold.stop()
        self._sources.interrupt()

    def watch(self, changed: Callable[[], None]) -> None:
        """Have `changed` called when models may have changed, by the repositories that see it themselves."""
        self._sources.watch(changed)

    def close(self) -> None:
        """Close the repositories."""
        if self._lazy is not None:
            self._lazy.cold.close()
        if self._models.memory is not None:
            self._models.memory.close()
        self._retiring.close()
        self._sources.close()

    def _ask_for(self, keys: Iterable[str]) -> None:
        with self._guard:
            self._asked.update(keys)

    def _unload(
        self, keys: Collection[str], unload_dependents: bool = False, versions: Collection[int] = ()
    ) -> None:  # fmt: skip
        while keys:
            members = {key: self._links.members(key) for key in keys} if unload_dependents else {}
            names = {key: self._names[key] for key in sorted(keys)}
            gone = [key for key in names if not (versions and self._models.take_out_some(key, names[key], versions))]
            with self._guard:
                self._asked.difference_update(gone)
            if self._lazy is not None:
                self._lazy.cold.forget(gone)
            if not versions:
                self._models.take_out(names)
            followed = {member for key in gone for member in members.get(key, ())}
            keys = {member for member in followed if member not in self._asked and not self._links.needed(member)}
            versions = ()

    def _eager(self, keys: Sequence[str], found: Scan, failures: dict[str, TritonError]) -> list[str]:
        """Return the models that are to be loaded now, and list those that are to be loaded when they are asked for."""
        eager: dict[str, bool] = {}

        def look(key: str) -> None:
            model = found.models.get(key)
            try:
                lazy = model is not None and self._note(LoadRequest(key, model.listing.name, model))
            except TritonError as error:
                log.error("failed to load '%s': %s", key, error.message)
                self._table.explain(key, error.message)
                failures[key] = error
            else:
                eager[key] = not lazy or bool(self._table.ready(key))

        self._at_once(look, keys)
        return [key for key in keys if eager.get(key)]

    def _note(self, request: LoadRequest, *, along: bool = False) -> bool:
        """Say whether a model is lazy; then it is listed. Raises InvalidArgument where it does not say clearly whether it is."""
        key, found = request.key, request.found
        config_name = self._loader.surroundings.config_name
        choice = None
        if found is not None and not request.files:
            choice = lazy_choice(found, request.config, config_name, self._memory, along=along)
        if choice is not None and found is not None:
            self._names[key] = request.name
            self._lazily().note(key, found, choice, request.config)
        elif self._lazy is not None:
            self._lazy.cold.forget([key])
        return choice is not None

    def _listed(self) -> list[str]:
        return [] if self._lazy is None else [model.key for model in self._lazy.cold.all()]

    def _lazily(self) -> LazyLoading:
        with self._guard:
            if self._lazy is None:
                from tritonpy.repository.budget.report import MemoryReport
                from tritonpy.repository.lazy.lazy_loading import LazyLoading

                self._lazy = LazyLoading(
                    self._table,
                    self._loader,
                    self._sources,
                    self._models,
                    self._load_lazy_members,
                    self._memory,
                    self._threads,
                )
                self._report = MemoryReport(self._lazy, self._bounded(self._lazy))
                self._loader.surroundings.metrics.add_source(self._report.families)
            return self._lazy

    def _bounded(self, lazy: LazyLoading) -> MemoryBudget | None:
        if self._memory.limited:
            from tritonpy.repository.budget.bounding import bound_memory

            self._models.memory = bound_memory(self._table, self._loader, self._links, lazy, self._memory)
        return self._models.memory

    def _unloaded(self, model: LoadedModel) -> None:
        if self._lazy is not None:
            self._lazy.departed(model)
        self._events.unloaded(model)

    def _load_lazy_members(self, key: str, patience: Patience) -> list[TritonError]:
        """Load what a lazy ensemble stands on; what nobody else asked for is lazy with it."""
        return self._load_members([key], patience)

    def _load_members(self, keys: Iterable[str], patience: Patience | None = None) -> list[TritonError]:
        """Load what the ensembles among `keys` stand on, and what that stands on; return what went wrong."""
        errors: list[TritonError] = []

        def load(key: str) -> None:
            model = found.models.get(key)
            try:
                if model is not None:
                    along = patience is not None and key not in self._asked
                    if along or self._lazy is None or self._lazy.cold.get(key) is None:
                        self._note(LoadRequest(key, model.listing.name, model), along=along)
            except TritonError as wrong:
                errors.append(wrong)
                return
            failure = self._try_load(key, found, as_member=True, patience=patience)
            if failure is not None:
                errors.append(failure)

        seen = {self._names.get(key, key) for key in keys}
        while names := {name for key in keys for name in self._links.member_names(key)} - seen:
            seen |= names
            found = self._sources.look_up(*sorted(names))
            keys = found.names
            self._at_once(load, keys)
        return errors

    def _at_once(self, load: Callable[[str], object], keys: Sequence[str]) -> None:
        load_batch(load, keys, self._threads, _SLOW_AT_START_S, settle=True)

    def _try_load(
        self,
        key: str,
        found: Scan,
        *,
        as_member: bool = False,
        patience: Patience | None = None,
        note: str | Callable[[], str] = "",
    ) -> TritonError | None:
        if key not in found.models:
            return _not_found(key, found)
        model = found.models[key]
        return self._tried(LoadRequest(key, model.listing.name, model, as_member=as_member, patience=patience), note)

    def _tried(self, request: LoadRequest, note: str | Callable[[], str] = "") -> TritonError | None:
        self._names[request.key] = request.name
        try:
            self._models.load(request, note)
        except TritonError as error:
            return error
        return None

    def _settled(self, key: str) -> TritonError | None:
        try:
            self._models.settle(key)
        except TritonError as error:
            return error
        return None


def _check_name(name: str) -> None:
    trimmed = name.strip(_SPACES)
    if not trimmed:
        raise InvalidArgument("Model name cannot be empty. Please enter a valid name to deploy.")
    if "/" in name or any(part in {".", ".."} for part in trimmed.split("\\")):
        raise InvalidArgument(f"invalid model name '{name}', model name must not contain path traversal characters")


def _not_found(name: str, found: Scan) -> TritonError:
    """Log that no model of this name can be loaded, and return the error for the caller."""
    twice = name in found.duplicates
    text = "not unique across all model repositories" if twice else "model not found in any model repository."
    log.error("failed to poll model '%s': %s", name, text)
    reason = f": {DUPLICATE}" if name in found.duplicates else ""
    return Internal(f"failed to load '{name}', failed to poll from model repository{reason}")
