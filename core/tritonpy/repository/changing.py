"""One load of a model, ready to be put in the place of what serves: what is built, and what goes on."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tritonpy.config.instances_apart import with_instances_of
from tritonpy.model.loaded import LoadedModel
from tritonpy.repository.loader import ModelLoader
from tritonpy.repository.loading import VersionLoading
from tritonpy.repository.prepared import Prepared
from tritonpy.repository.retiring import Departure
from tritonpy.repository.reuse import Origins, reuse
from tritonpy.repository.table import ModelTable, State
from tritonpy.repository.updating import InstanceUpdate, InstanceUpdates

log = logging.getLogger("tritonpy.repository")

if TYPE_CHECKING:
    from tritonpy.repository.budget.memory_budget import MemoryBudget
    from tritonpy.repository.budget.patience import Patience


@dataclass(frozen=True, slots=True)
class Loaded:
    """What stands behind the serving versions of a model. `overridden`: a plain load is to undo what a request said though the files are the same."""

    fingerprint: str
    overridden: bool
    origins: Origins

    def departures(self, key: str, gone: Sequence[LoadedModel], staying: Collection[Prepared] = ()) -> list[Departure]:
        """Return what is to be retired where `gone` of these versions go, and what nothing of `staying` is goes with them."""
        departures: list[Departure] = []
        for prepared, models in _by_origin(self.origins, gone):
            final = all(each is not prepared for each in staying)
            if models or final:
                departures.append(Departure(key, models, prepared, final))
        return departures


@dataclass(frozen=True, slots=True)
class Change:
    """The versions that are to serve: those that were built from `prepared`, and those that go on."""

    prepared: Prepared
    built: Mapping[int, LoadedModel]
    update: InstanceUpdate
    left: Sequence[LoadedModel]

    @property
    def going_on(self) -> list[LoadedModel]:
        """Those that served before."""
        return [*self.update.models, *self.left]

    @property
    def models(self) -> dict[int, LoadedModel]:
        """All of them, by version."""
        return {**{model.version: model for model in self.going_on}, **self.built}

    def origins(self, before: Loaded | None) -> Origins:
        """Return what each of them is loaded from."""
        built = dict.fromkeys(self.built, self.prepared)
        return built if before is None else {v: built.get(v) or before.origins[v] for v in self.models}

    def drop(self) -> None:
        """End what was built: everything stays as it is."""
        self.update.drop()
        for model in self.built.values():
            model.close()


class Changes:
    """Makes changes ready; what serves is left alone. `memory` is set where that has a bound."""

    def __init__(self, table: ModelTable, loader: ModelLoader, versions: VersionLoading) -> None:
        self.memory: MemoryBudget | None = None
        self._table = table
        self._loader = loader
        self._versions = versions
        self._updates = InstanceUpdates(table, loader)

    def prepare(self, prepared: Prepared, before: Loaded | None, patience: Patience | None) -> Change:
        """Build what a load of `prepared` asks for beyond what serves. Raises what went wrong, and then nothing is started."""
        chosen = self._versions.choose(prepared)
        serving = self._table.ready(prepared.key) if before is not None else []
        origins: Origins = before.origins if before is not None else {}
        found = reuse(prepared, chosen, serving, origins, self._loader.normalized)
        update = self._updates.prepare(found.changed, prepared)
        try:
            if self.memory is not None:
                self._grow(update, serving, origins)
            built = self._built(prepared, found.built, patience) if found.built else {}
        except BaseException:
            update.drop()
            raise
        return Change(prepared, built, update, found.left)

    def make(self, change: Change, before: Loaded | None) -> None:
        """Let what goes on of a change, which is in its place now, be as it says, and give back what is not needed for it."""
        for model, config, _, _ in change.update.changes:
            assert before is not None, "what goes on was loaded before: this is a bug"  # noqa: S101
            origin = before.origins[model.version]
            origin.given, origin.config = with_instances_of(origin.given, change.prepared.given), config
        change.update.make()
        if change.update.changes:
            log.info("changed the instances of '%s'", change.prepared.key)
        if not change.built:
            change.prepared.release()
        if before is not None:
            self.keep(before, change.going_on)

    def keep(self, before: Loaded, going_on: Sequence[LoadedModel]) -> None:
        """Take note that of the versions of `before` only some go on."""
        for origin, models in _by_origin(before.origins, going_on):
            origin.versions = tuple(model.version for model in models)
            if self.memory is not None:
                self.memory.narrow(origin, models)

    def _grow(self, update: InstanceUpdate, serving: Sequence[LoadedModel], origins: Origins) -> None:
        assert self.memory is not None, "there is a budget where this is asked for: this is a bug"  # noqa: S101
        changed = {model.version for model in update.models}
        for origin, models in _by_origin(origins, serving):
            if changed.intersection(model.version for model in models):
                self.memory.grow(origin, models)

    def _built(
        self, prepared: Prepared, versions: Sequence[int], patience: Patience | None
    ) -> Mapping[int, LoadedModel]:  # fmt: skip
        prepared.versions = tuple(versions)
        if self.memory is None:
            return self._versions.load(prepared, versions)
        self.memory.take(prepared, patience)
        models = self._versions.load(prepared, versions)
        try:
            self.memory.settle(prepared, models.values())
        except BaseException:
            for version, model in models.items():
                model.close()
                self._table.set_state(
                    prepared.key, version, State.UNAVAILABLE, "there is no room for it in the memory budget"
                )
            raise
        return models


def _by_origin(origins: Origins, models: Sequence[LoadedModel]) -> list[tuple[Prepared, list[LoadedModel]]]:
    """Return everything that versions were loaded from, each with those of `models` that it is the origin of."""
    different = {id(prepared): prepared for prepared in origins.values()}.values()
    return [(each, [model for model in models if origins[model.version] is each]) for each in different]
