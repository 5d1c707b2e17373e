"""Lists the models that load at their first request, loads them then, and unloads them to make room."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

from tritonpy.config.server.memory_settings import MemorySettings
from tritonpy.errors import TritonError, Unavailable
from tritonpy.model.loaded import LoadedModel
from tritonpy.repository.budget.no_room import NoRoom, Outgrown
from tritonpy.repository.budget.patience import Patience
from tritonpy.repository.dependencies import is_ensemble
from tritonpy.repository.lazy.choice import LazyChoice
from tritonpy.repository.lazy.cold_model import ColdModel
from tritonpy.repository.lazy.cold_models import ColdModels
from tritonpy.repository.loader import ModelLoader
from tritonpy.repository.operations import LoadRequest, ModelOperations
from tritonpy.repository.sources import Found, Sources
from tritonpy.repository.table import Listed, ModelTable, State
from tritonpy.repository.versions import version_folders, versions_to_load

log = logging.getLogger("tritonpy.repository")

_BEST = (State.READY, State.LOADING, State.UNLOADING)
LoadMembers = Callable[[str, Patience], Sequence[TritonError]]
"""Loads what an ensemble stands on; returns what went wrong."""


class LazyLoading:
    """One for all models of a server; made when the first of them is lazy, or memory has a bound."""

    def __init__(
        self,
        table: ModelTable,
        loader: ModelLoader,
        sources: Sources,
        models: ModelOperations,
        load_members: LoadMembers,
        settings: MemorySettings,
        threads: int,
    ) -> None:
        self._table = table
        self._loader = loader
        self._sources = sources
        self._models = models
        self._load_members = load_members
        self._settings = settings
        self._one_ensemble = threading.Lock()
        self.cold = ColdModels(table, loader.surroundings.timer, settings, self._load, threads)
        table.cold = self.cold

    def note(self, key: str, found: Found, choice: LazyChoice, override: str | None) -> None:
        """List a lazy model, or list it as it is now."""
        listing = found.listing
        self.cold.note(key, listing.name, self._listed(found, choice), listing.fingerprint, choice.pinned, override)

    def is_current(self, key: str, found: Found) -> bool:
        """Say whether a model is listed as it is found, and not loaded."""
        cold = self.cold.get(key)
        return cold is not None and cold.fingerprint == found.listing.fingerprint and not self._table.ready(key)

    def departed(self, model: LoadedModel) -> None:
        """Take note that a version is gone."""
        if self.cold.get(model.context.qualified_name) is not None:
            self.cold.tally.departed(model)

    def loaded(self) -> list[LoadedModel]:
        """Return the versions of lazy models that serve."""
        return [model for cold in self.cold.all() for model in self._table.ready(cold.key)]

    def state(self, key: str) -> State:
        """Return the state of a model: the best one of its versions."""
        states = {State(line.state) for line in self._table.index(key) if line.state}
        return next((state for state in _BEST if state in states), State.UNAVAILABLE)

    def evict(self, key: str) -> bool:
        """Unload a lazy model that nobody uses; False where somebody does."""
        models = self._table.ready(key)
        if self.cold.get(key) is None or not self._models.withdraw(key):
            return False
        self.cold.tally.evictions[key] += 1
        idle_s = max(time.time() - max(model.last_use_ms for model in models) / 1000, 0)
        log.info("'%s' makes room: last used %.1f s ago, it is unloaded", key, idle_s)
        return True

    def _listed(self, found: Found, choice: LazyChoice) -> Listed:
        listing = found.listing
        versions, _ = versions_to_load(choice.config, version_folders(listing.files)[0])
        return Listed(self._loader.described(choice.config, listing), tuple(versions))

    def _load(self, cold: ColdModel) -> None:
        """Load a model for those who wait for it. Raises what went wrong; NoRoom where memory was missing."""
        patience = cold.patience(self._settings.wait_s)
        with self._alone(cold):
            try:
                self._attempt(cold, patience)
            except Outgrown:  # its size is known now: that it waits for
                self._attempt(cold, patience)

    def _alone(self, cold: ColdModel) -> AbstractContextManager[object]:
        """Ensembles take their room in parts: two of them at once could each wait for what the other one has."""
        config = cold.listed.config
        ensemble = config is not None and is_ensemble(config)
        return self._one_ensemble if ensemble and self._settings.limited else nullcontext()

    def _attempt(self, cold: ColdModel, patience: Patience) -> None:
        errors: Sequence[TritonError] = ()
        try:
            found = self._sources.look_up(cold.name).models.get(cold.key)
            if found is None:
                raise Unavailable(f"'{cold.key}' is in no model repository any more")
            request = LoadRequest(cold.key, cold.name, found, cold.override, as_member=True, patience=patience)
            self._models.load(request, " for a request")
            errors = self._load_members(cold.key, patience)
            self._models.settle(cold.key)
        except TritonError as error:
            if not self._table.ready(cold.key):  # an ensemble would go on waiting for its members
                self._models.take_out({cold.key: cold.name})
            lacking = next(filter(None, map(_no_room, (error, *errors))), None)
            if lacking is None:
                raise
            raise type(lacking)(lacking.message, retry_after_s=lacking.retry_after_s) from None


def _no_room(error: TritonError) -> NoRoom | None:
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, NoRoom):
        cause = cause.__cause__
    return cause
