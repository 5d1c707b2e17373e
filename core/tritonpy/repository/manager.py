"""Loads, reloads and unloads models: what clients, the start of the server and polls ask for."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from tritonpy.api.engine import ModelIndex
from tritonpy.api.repository import Repository
from tritonpy.config.qualified import qualified
from tritonpy.errors import Internal, InvalidArgument, TritonError
from tritonpy.model.loaded import LoadedModel
from tritonpy.repository.linking import EnsembleLinks
from tritonpy.repository.loader import ModelLoader
from tritonpy.repository.loading import VersionLoading
from tritonpy.repository.operations import LoadRequest, ModelOperations
from tritonpy.repository.overrides import check_file_names
from tritonpy.repository.retiring import Retiring
from tritonpy.repository.sources import DUPLICATE, Scan, Sources
from tritonpy.repository.table import ModelTable, State

GONE = "model is no longer in a repository"
log = logging.getLogger("tritonpy.repository")

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
    ) -> None:
        versions = VersionLoading(table, loader, retries)
        self._sources = Sources(repositories, namespaced)
        self._table = table
        self._threads = threads
        self._retiring = Retiring(table, events.unloaded)
        self._links = EnsembleLinks(table, versions, self._retiring, events.loaded)
        self._models = ModelOperations(table, loader, versions, self._links, self._retiring, events.loaded)
        self._names: dict[str, str] = {}
        self._asked: set[str] = set()
        self._guard = threading.Lock()

    def load_all(self, names: Collection[str] | None = None) -> dict[str, TritonError]:
        """Load `names` (None: every model there is) and return what failed, by name. Raises Unavailable for an unreadable repository."""
        found = self._sources.scan()
        wanted = found.names if names is None else [key for name in sorted(names) for key in found.called(name)]
        failures: dict[str, TritonError] = {}
        done = 0

        def finish(key: str, started: float, error: TritonError | None) -> None:
            nonlocal done
            with self._guard:
                done += 1
                if error is not None:
                    failures[key] = error  # its text is in the log already
                    return
                progress = f"{done} of {len(wanted)}" + (f", {len(failures)} failed" if failures else "")
                log.info("loaded '%s' in %.2f s (%s)", key, time.monotonic() - started, progress)

        def load(key: str) -> None:
            started = time.monotonic()
            error = self._try_load(key, found)
            if error is not None or not self._links.member_names(key):
                finish(key, started, error)

        self._ask_for(wanted)
        self._at_once(load, wanted)
        self._load_members(wanted)
        for key in wanted:
            if key not in failures and self._links.member_names(key):
                finish(key, time.monotonic(), self._settled(key))
        return failures

    def load(self, name: str, config: str | None = None, files: Mapping[str, bytes] | None = None) -> None:
        """Load or reload one model, and what it stands on; returns when it serves.

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
            wanted = [LoadRequest(name, name, found.models.get(name), config, files)]
        else:
            wanted = [LoadRequest(key, name, model, config) for key, model in found.models.items()]
        keys = [one.key for one in wanted]
        self._ask_for(keys)
        errors = [error for one in wanted if (error := self._tried(one)) is not None]
        self._load_members(keys)
        errors += [error for key in keys if (error := self._settled(key)) is not None]
        if errors:
            raise errors[0] if len(errors) == 1 else InvalidArgument("".join(error.message for error in errors))

    def unload(self, name: str, unload_dependents: bool = False) -> None:
        """Let no new request reach the model; returns at once, what is in flight finishes. An unknown name is no error, as in Triton.

        With `unload_dependents`, what an ensemble stands on is unloaded too, unless it was asked for itself or another ensemble stands on it.
        """
        self._unload({key for key, its in list(self._names.items()) if its == name}, unload_dependents)

    def poll(self) -> None:
        """Make the served models those on disk: load what is new or changed, unload what is gone."""
        found = self._sources.scan()
        changed = [
            key
            for key, model in found.models.items()
            if self._models.is_changed(LoadRequest(key, model.listing.name, model))
        ]
        gone = {key for key in self._models.wanted() if key not in found.models}
        for key in sorted(gone):
            log.info("'%s': %s", key, DUPLICATE if key in found.duplicates else GONE)
        self._unload(gone)
        if changed:
            self._at_once(partial(self._try_load, found=found), changed)
            for key in changed:
                self._settled(key)

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

    def stop(self, timeout_s: float) -> bool:
        """Unload everything, waiting `timeout_s` for requests in flight; False when some had to be given up."""
        self.stop_loading()
        self._models.take_out_all()
        return self._retiring.wait(timeout_s)

    def stop_loading(self) -> None:
        """Load nothing more: what has not begun fails, and what is loading now is dropped when it is done."""
        self._models.stop_loading()
        self._sources.interrupt()

    def watch(self, changed: Callable[[], None]) -> None:
        """Have `changed` called when models may have changed, by the repositories that see it themselves."""
        self._sources.watch(changed)

    def close(self) -> None:
        """Close the repositories."""
        self._sources.close()

    def _ask_for(self, keys: Iterable[str]) -> None:
        with self._guard:
            self._asked.update(keys)

    def _unload(self, keys: Collection[str], unload_dependents: bool = False) -> None:
        while keys:
            members = {member for key in keys for member in self._links.members(key)} if unload_dependents else set()
            with self._guard:
                self._asked.difference_update(keys)
            self._models.take_out({key: self._names[key] for key in sorted(keys)})
            keys = {member for member in members if member not in self._asked and not self._links.needed(member)}

    def _load_members(self, keys: Iterable[str]) -> None:
        """Load what the ensembles among `keys` stand on, and what that stands on."""
        seen = {self._names.get(key, key) for key in keys}
        while names := {name for key in keys for name in self._links.member_names(key)} - seen:
            seen |= names
            found = self._sources.look_up(*sorted(names))
            keys = found.names
            self._at_once(partial(self._try_load, found=found, as_member=True), keys)

    def _at_once(self, load: Callable[[str], object], keys: Sequence[str]) -> None:
        with ThreadPoolExecutor(self._threads, thread_name_prefix="load") as pool:
            list(pool.map(load, keys))

    def _try_load(self, key: str, found: Scan, *, as_member: bool = False) -> TritonError | None:
        if key not in found.models:
            error = _not_found(key, found)
            log.error("%s", error.message)
            return error
        model = found.models[key]
        return self._tried(LoadRequest(key, model.listing.name, model, as_member=as_member))

    def _tried(self, request: LoadRequest) -> TritonError | None:
        self._names[request.key] = request.name
        try:
            self._models.load(request)
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
    if not name:
        raise InvalidArgument("Model name cannot be empty. Please enter a valid name to deploy.")
    if "/" in name or "\\" in name or name in {".", ".."}:
        raise InvalidArgument(f"invalid model name '{name}', model name must not contain path traversal characters")


def _not_found(name: str, found: Scan) -> TritonError:
    reason = f": {DUPLICATE}" if name in found.duplicates else ""
    return Internal(f"failed to load '{name}', failed to poll from model repository{reason}")
