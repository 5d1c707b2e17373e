"""Lazy loading: lists lazy models, loads them on request, and evicts them to free memory."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

from tritonpy.config.server.sections import MemorySettings
from tritonpy.errors import TritonError, Unavailable
from tritonpy.model.loaded_model import LoadedModel
from tritonpy.repository.budget.capacity_errors import DemandExceeded, InsufficientCapacity
from tritonpy.repository.budget.load_deadline import LoadDeadline
from tritonpy.repository.dependencies import is_ensemble
from tritonpy.repository.lazy.lazy_choice import LazyChoice
from tritonpy.repository.lazy.lazy_model import LazyModel
from tritonpy.repository.lazy.lazy_models import LazyModels
from tritonpy.repository.model_loader import ModelLoader
from tritonpy.repository.model_operations import LoadRequest, ModelOperations
from tritonpy.repository.model_table import LazyListing, ModelTable, State
from tritonpy.repository.sources import FoundModel, Sources
from tritonpy.repository.versions import version_folders, versions_to_load

log = logging.getLogger("tritonpy.repository")

_STATES_BY_RANK = (State.READY, State.LOADING, State.UNLOADING)
LoadMembers = Callable[[str, LoadDeadline], Sequence[TritonError]]
"""Loads the members of an ensemble; returns the errors."""


class LazyModelManager:
    """Manages all lazy models of a server; created for the first of them or for a memory limit."""

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
        self._ensemble_lock = threading.Lock()
        self.models = LazyModels(table, loader.load_context.timer, settings, self._load, threads)
        table.lazy_loader = self.models

    def add(self, key: str, found: FoundModel, choice: LazyChoice, override: str | None) -> None:
        """Register a lazy model, or update its listing."""
        listing = found.listing
        self.models.add(
            key, listing.name, self._lazy_listing(found, choice), listing.fingerprint, choice.pinned, override
        )

    def is_current(self, key: str, found: FoundModel) -> bool:
        """Return whether a model is registered with the files of `found`, and not loaded."""
        lazy_model = self.models.get(key)
        return (
            lazy_model is not None
            and lazy_model.fingerprint == found.listing.fingerprint
            and not self._table.ready(key)
        )

    def record_unload(self, model: LoadedModel) -> None:
        """Count the requests of an unloaded version."""
        if self.models.get(model.context.qualified_name) is not None:
            self.models.counters.record_unload(model)

    def loaded(self) -> list[LoadedModel]:
        """Return the ready versions of lazy models."""
        return [model for lazy_model in self.models.all() for model in self._table.ready(lazy_model.key)]

    def state(self, key: str) -> State:
        """Return the state of a model: the best one of its versions."""
        states = {State(line.state) for line in self._table.index(key) if line.state}
        return next((state for state in _STATES_BY_RANK if state in states), State.UNAVAILABLE)

    def evict(self, key: str) -> bool:
        """Unload an idle lazy model; False if it is in use."""
        models = self._table.ready(key)
        if self.models.get(key) is None or not self._models.unload_if_idle(key):
            return False
        self.models.counters.evictions[key] += 1
        idle_s = max(time.time() - max(model.last_use_ms for model in models) / 1000, 0)
        log.info("unloading '%s' to free memory, last used %.1f s ago", key, idle_s)
        return True

    def _lazy_listing(self, found: FoundModel, choice: LazyChoice) -> LazyListing:
        listing = found.listing
        versions, _ = versions_to_load(choice.config, version_folders(listing.files)[0])
        return LazyListing(self._loader.describe(choice.config, listing), tuple(versions))

    def _load(self, lazy_model: LazyModel) -> None:
        """Load a model for waiting requests. Raises `InsufficientCapacity` if memory is missing."""
        deadline = lazy_model.deadline(self._settings.wait_s)
        with self._exclusive(lazy_model):
            try:
                self._attempt(lazy_model, deadline)
            except DemandExceeded:  # its size is now known, so wait for that
                self._attempt(lazy_model, deadline)

    def _exclusive(self, lazy_model: LazyModel) -> AbstractContextManager[object]:
        """Return a lock for ensembles with limited memory.

        Ensembles reserve memory in several steps. Two concurrent loads could each wait for memory
        that the other one holds.
        """
        config = lazy_model.listing.config
        ensemble = config is not None and is_ensemble(config)
        return self._ensemble_lock if ensemble and self._settings.limited else nullcontext()

    def _attempt(self, lazy_model: LazyModel, deadline: LoadDeadline) -> None:
        errors: Sequence[TritonError] = ()
        try:
            found = self._sources.look_up(lazy_model.name).models.get(lazy_model.key)
            if found is None:
                raise Unavailable(f"'{lazy_model.key}' is no longer in a model repository")
            request = LoadRequest(
                lazy_model.key, lazy_model.name, found, lazy_model.override, as_member=True, deadline=deadline
            )
            self._models.load(request, " for a request")
            errors = self._load_members(lazy_model.key, deadline)
            self._models.settle_ensemble(lazy_model.key)
        except TritonError as error:
            # An ensemble would keep waiting for its members.
            if not self._table.ready(lazy_model.key):
                self._models.unload({lazy_model.key: lazy_model.name})
            capacity_error = next(filter(None, map(_capacity_error, (error, *errors))), None)
            if capacity_error is None:
                raise
            raise type(capacity_error)(capacity_error.message, retry_after_s=capacity_error.retry_after_s) from None


def _capacity_error(error: TritonError) -> InsufficientCapacity | None:
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, InsufficientCapacity):
        cause = cause.__cause__
    return cause
