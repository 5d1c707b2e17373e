"""What is done to one model: it is loaded, loaded anew, or taken out."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from tritonpy.api.repo_agent import AgentAction
from tritonpy.errors import Internal, InvalidArgument, TritonError, Unavailable
from tritonpy.model.loaded import LoadedModel
from tritonpy.repository.dependencies import is_ensemble
from tritonpy.repository.linking import EnsembleLinks
from tritonpy.repository.loader import ModelLoader, Prepared
from tritonpy.repository.loading import VersionLoading
from tritonpy.repository.local import list_model
from tritonpy.repository.overrides import write_override
from tritonpy.repository.retiring import Departure, Retiring
from tritonpy.repository.sources import Found
from tritonpy.repository.table import ModelTable
from tritonpy.repository.updating import InstanceUpdates
from tritonpy.repository.wish import Wish

log = logging.getLogger("tritonpy.repository")


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """A model that is to be loaded: how it is called, where it is (None: only in `files`), and what the load request says instead of its files.

    An ensemble's member (`as_member`) is left as a client's request made it; a plain load undoes what that said instead of the files.
    """

    key: str
    name: str
    found: Found | None
    config: str | None = None
    files: Mapping[str, bytes] | None = None
    as_member: bool = False

    @property
    def fingerprint(self) -> str:
        """That of its files."""
        return self.found.listing.fingerprint if self.found is not None else ""


class FilesOutOfReach(Internal):
    """A model's files could not be had: that says nothing of them, and the next poll tries again."""


@dataclass(frozen=True, slots=True)
class _Loaded:
    """What stands behind the serving versions of a model."""

    fingerprint: str
    overridden: bool
    prepared: Prepared


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
    ) -> None:
        self._table = table
        self._loader = loader
        self._versions = versions
        self._links = links
        self._retiring = retiring
        self._tell_loaded = loaded
        self._updates = InstanceUpdates(table, loader)
        self._failed: dict[str, str] = {}
        self._loaded: dict[str, _Loaded] = {}
        self._locks: dict[str, threading.Lock] = {}
        self._guard = threading.Lock()
        self._stopping = False

    def load(self, request: LoadRequest) -> None:
        """Load or reload a model, or prepare an ensemble, unless it did not change. Raises a TritonError, the old versions then serve on."""
        with self._lock_of(request.key):
            if self._stands(request):
                return
            try:
                models, departures = self._load(request)
            except TritonError as error:
                if not isinstance(error, FilesOutOfReach):
                    self._failed[request.key] = request.fingerprint
                stays = "; what is loaded goes on serving" if request.key in self._loaded else ""
                log.error("%s%s", error.message.rstrip(), stays)
                self._table.explain(request.key, error.message.rstrip())
                raise
            self._failed.pop(request.key, None)
        for model in models:
            self._tell_loaded(model)
        self._follow(departures)

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
            with self._lock_of(key):
                departures += self._links.drop(key)
                loaded = self._loaded.pop(key, None)
                if loaded is not None:
                    departures.append(Departure(key, self._table.swap(key, {}), loaded.prepared))
                self._links.forget(key)
                self._table.dismiss(key, name)
        self._follow(departures)

    def wanted(self) -> list[str]:
        """Return the models that serve, and the ensembles that would."""
        return [*self._loaded, *self._links.wanted()]

    def is_changed(self, request: LoadRequest) -> bool:
        """Say whether the model is to be loaded because its files are others than those that it was loaded from, or failed to."""
        if self._failed.get(request.key) == request.fingerprint:
            return False  # it failed as it is now: not again before a file changes
        standing = self._standing(request.key)
        return standing is None or standing.fingerprint != request.fingerprint

    def stop_loading(self) -> None:
        """Load nothing more: what has not begun fails, and what is loading now is dropped when it is done."""
        with self._guard:
            self._stopping = True

    def take_out_all(self) -> None:
        """Take out every model, after `stop_loading`."""
        departures = self._links.close()
        with self._guard:
            loaded, self._loaded = self._loaded, {}
        departures += [Departure(key, self._table.swap(key, {}), entry.prepared) for key, entry in loaded.items()]
        self._retiring.retire(*departures)

    def _follow(self, departures: Sequence[Departure]) -> None:
        """Let the ensembles follow what was done, and retire what it left."""
        try:
            self._links.relink()
        finally:
            self._retiring.retire(*departures)

    def _stands(self, request: LoadRequest) -> bool:
        """Say whether there is nothing to do."""
        standing = self._standing(request.key)
        if request.config is not None or standing is None or standing.fingerprint != request.fingerprint:
            return False
        return request.as_member or not standing.overridden

    def _standing(self, key: str) -> _Loaded | Wish | None:
        return self._loaded.get(key) or self._links.wish(key)

    def _load(self, request: LoadRequest) -> tuple[Sequence[LoadedModel], Sequence[Departure]]:
        """Return the versions that serve from now on, and what is to be retired."""
        request, prepared = self._prepare(request)
        self._table.introduce(request.key, request.name)
        overridden = request.config is not None
        if is_ensemble(prepared.config):
            return (), self._want(request.key, Wish(prepared, request.fingerprint, overridden))
        entry = _Loaded(request.fingerprint, overridden, prepared)
        before = self._loaded.get(request.key)
        if before is not None and self._updates.may_update(before.prepared, prepared):
            self._update(request.key, entry, before.prepared)
            return (), ()
        models, departures = self._load_versions(request.key, entry)
        prepared.agents.tell(AgentAction.LOAD_COMPLETE)
        return models, departures

    def _prepare(self, request: LoadRequest) -> tuple[LoadRequest, Prepared]:
        """Return the model on its way, and the request for it as it was when its files were taken over."""
        try:
            self._refuse_when_stopping()
            if request.files:
                folder = write_override(request.name, request.files)
                path = Path(folder.name)
                listing = list_model(request.name, path)
                return request, self._loader.prepare(listing, path, request.config, folder.cleanup)
            assert request.found is not None, "a load without files has a model on disk: this is a bug"  # noqa: S101
            found, path = request.found.localize()
            release = partial(found.repository.release, path)
            prepared = self._loader.prepare(found.listing, path, request.config, release, found.namespace)
            return replace(request, found=found), prepared
        except Exception as error:
            what = f"failed to load '{request.name}', failed to poll from model repository: "
            if isinstance(error, Unavailable):
                raise FilesOutOfReach(f"{what}{error.message}") from error
            raise _failure(what, error) from error

    def _want(self, key: str, wish: Wish) -> list[Departure]:
        departures = []
        loaded = self._loaded.pop(key, None)
        if loaded is not None:  # its files made it an ensemble
            departures.append(Departure(key, self._table.swap(key, {}), loaded.prepared))
        self._links.want(key, wish)
        return departures

    def _load_versions(self, key: str, entry: _Loaded) -> tuple[Sequence[LoadedModel], Sequence[Departure]]:
        prepared = entry.prepared
        try:
            models = self._versions.load(prepared)
            try:
                with self._guard:  # from here on `take_out_all` sees it
                    self._refuse_when_stopping()
                    before, self._loaded[key] = self._loaded.get(key), entry
                    departures = self._links.drop(key)  # its files made it another model
                    old = self._table.swap(key, models)
            except Unavailable:
                for model in models.values():
                    model.close()
                raise
        except Exception as error:
            prepared.agents.tell(AgentAction.LOAD_FAIL)
            prepared.release()
            what = f"load failed for model '{key}': "
            text = _failure(what, error).message
            self._links.failed(key, prepared.name, text.removeprefix(what))
            # Triton's code for this is INVALID_ARG, whatever went wrong in the backend
            raise InvalidArgument(f"{text}\n") from error
        self._links.forget(key)
        if before is not None:
            departures.append(Departure(key, old, before.prepared))
        return list(models.values()), departures

    def _update(self, key: str, entry: _Loaded, old: Prepared) -> None:
        new = entry.prepared
        try:
            update = self._updates.prepare(old, new)
            loaded = replace(old, listing=new.listing, given=new.given, config=update.config)
            try:
                with self._guard:  # from here on `take_out_all` sees it
                    self._refuse_when_stopping()
                    self._loaded[key] = replace(entry, prepared=loaded)
            except Unavailable:
                update.drop()
                raise
        except TritonError as error:
            raise InvalidArgument(f"load failed for model '{key}': {error.message}\n") from error
        finally:
            new.release()  # what serves goes on with what it was loaded from
        update.make()
        log.info("changed the instances of '%s'", key)

    def _refuse_when_stopping(self) -> None:
        if self._stopping:
            raise Unavailable("Server exiting")

    def _lock_of(self, key: str) -> threading.Lock:
        with self._guard:
            return self._locks.setdefault(key, threading.Lock())


def _failure(what: str, error: Exception) -> TritonError:
    if isinstance(error, TritonError):
        return Internal(f"{what}{error.message}")
    log.error("%s%s", what, error, exc_info=error)
    return Internal(f"{what}{type(error).__name__}: {error}")
