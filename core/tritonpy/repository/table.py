"""The models that the server knows: versions, states, reasons, and the look-up that every request makes."""

from __future__ import annotations

import enum
import threading
from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from tritonpy.api.engine import ModelIndex
from tritonpy.errors import InvalidArgument, NotFound, Unavailable
from tritonpy.model.loaded import LoadedModel
from tritonpy.types import InferRequest

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig

UNLOADED = "unloaded"
LAZY = "not loaded, it loads at its first request"
NO_VERSION = 0  # stands for a model that failed before its versions were known


class State(enum.Enum):
    """Triton's states of a version."""

    READY = "READY"
    UNAVAILABLE = "UNAVAILABLE"
    LOADING = "LOADING"
    UNLOADING = "UNLOADING"


@dataclass(frozen=True, slots=True)
class VersionRecord:
    """One version: its state, why, and the model while it is READY."""

    state: State
    reason: str = ""
    model: LoadedModel | None = None


@dataclass(frozen=True, slots=True)
class Listed:
    """A model that is loaded when it is asked for: its configuration as far as its files tell it (None: not enough), and its versions."""

    config: ModelConfig | None
    versions: tuple[int, ...]


@dataclass(slots=True)
class Entry:
    """One model. `versions`, ascending, is replaced as a whole, never changed: readers need no lock. `failed`: the last load of a listed one did."""

    versions: Mapping[int, VersionRecord] = field(default_factory=dict)
    latest: LoadedModel | None = None
    listed: Listed | None = None
    failed: bool = False


class Cold(Protocol):
    """What the models that are listed need of whoever loads them."""

    def take(self, request: InferRequest) -> bool:
        """Own `request` until its model is loaded; False where that is not listed."""

    def rouse(self, name: str) -> None:
        """Begin to load a model."""

    def arriving(self, key: str, models: Mapping[int, LoadedModel]) -> AbstractContextManager[None]:
        """Let `models` have what waits for them before they are found."""


class ModelTable:
    """Name -> entry. Look-ups take no lock; changes are made under one. `cold` loads the listed models, None where there never was any."""

    def __init__(self) -> None:
        self.cold: Cold | None = None
        self._entries: dict[str, Entry] = {}
        self._changes = threading.Lock()

    def find(self, name: str, version: int = -1) -> LoadedModel:
        """Return the ready model. Raises NotFound, Unavailable or InvalidArgument in Triton's words."""
        entry = self._entries.get(name)
        if entry is None:
            name, entry = self._elsewhere(name)
        if version == -1:
            if entry.latest is None:
                raise NotFound(f"Request for unknown model: '{name}' has no available versions")
            return entry.latest
        record = entry.versions.get(version)
        if record is None or version == NO_VERSION:
            raise NotFound(f"Request for unknown model: '{name}' version {version} is not found")
        if record.model is None:
            raise Unavailable(f"Request for unknown model: '{name}' version {version} is not at ready state")
        return record.model

    def introduce(self, key: str, name: str) -> None:
        """Let the model `key` be found by its plain name too, where models have namespaces."""

    def dismiss(self, key: str, name: str) -> None:
        """Undo `introduce`: nobody wants the model any more."""

    def _elsewhere(self, name: str) -> tuple[str, Entry]:
        """Return a model, and how it is called, that has an entry under another name. Raises as `find` does."""
        raise InvalidArgument(f"Request for unknown model: '{name}' is not found")

    def config(self, name: str, version: int = -1) -> ModelConfig:
        """Return the configuration of the ready model, or what is known of that of a listed one. Raises as `find` does.

        Where the files of a listed model do not tell, it begins to load, and Unavailable is raised.
        """
        try:
            return self.find(name, version).config
        except (NotFound, Unavailable):
            listed = self.listed(name, version)
            if listed is None:
                raise
        if listed.config is None:
            if self.cold is not None:
                self.cold.rouse(name)
            text = f"model '{name}' is being loaded: its files do not tell its inputs and outputs"
            raise Unavailable(text, retry_after_s=1)
        return listed.config

    def key_of(self, name: str) -> str:
        """Return the qualified name of the model that is called `name`. Raises as `find` does."""
        return name if name in self._entries else self._elsewhere(name)[0]

    def listed(self, name: str, version: int = -1) -> Listed | None:
        """Return what is known of a model that loads when it is asked for, None where it, or this version of it, does not."""
        try:
            listed = self._entries[self.key_of(name)].listed
        except (InvalidArgument, NotFound):
            return None
        return listed if listed is not None and version in (-1, *listed.versions) else None

    def may_load(self, name: str, version: int = -1) -> bool:
        """Say whether a request would have a listed model loaded: its last load did not fail."""
        return self.listed(name, version) is not None and not self._entries[self.key_of(name)].failed

    def enlist(self, key: str, name: str, listed: Listed, failure: str = "") -> None:
        """Let a model be known though it is not loaded; `failure` is why its last load failed."""
        self.introduce(key, name)
        reason = f"{LAZY}; the last load failed: {failure}" if failure else LAZY
        with self._changes:
            entry = self._entries.setdefault(key, Entry())
            entry.listed, entry.failed = listed, bool(failure)
            kept = {
                version: record
                for version, record in entry.versions.items()
                if record.model is not None or record.state is State.UNLOADING
            }
            absent = VersionRecord(State.UNAVAILABLE, reason)
            self._replace(entry, {**dict.fromkeys(listed.versions or (NO_VERSION,), absent), **kept})

    def strike(self, key: str) -> None:
        """Undo `enlist`."""
        with self._changes:
            entry = self._entries[key]
            entry.listed, entry.failed = None, False
            kept = {v: record for v, record in entry.versions.items() if not record.reason.startswith(LAZY)}
            self._replace(entry, kept)

    def ready(self, name: str) -> list[LoadedModel]:
        """Return the ready versions of `name`, ascending."""
        entry = self._entries.get(name)
        if entry is None:
            try:
                _, entry = self._elsewhere(name)
            except (InvalidArgument, NotFound):
                return []
        return [record.model for record in entry.versions.values() if record.model is not None]

    def versions(self, name: str) -> list[int]:
        """Return the ready versions, ascending; of a listed model that is not loaded those that are loaded then."""
        listed = self.listed(name)
        return [model.version for model in self.ready(name)] or list(listed.versions if listed is not None else ())

    def all_ready(self) -> list[LoadedModel]:
        """Return every ready version of every model, by name and version."""
        return [model for name in sorted(self._entries) for model in self.ready(name)]

    def serving(self, name: str) -> list[str]:
        """Return the models that have a ready version and are called `name` where no namespace is given."""
        return [key for key in self._called(name) if self.ready(key)]

    def _called(self, name: str) -> Collection[str]:
        return (name,) if name in self._entries else ()

    def records(self) -> list[tuple[str, int, VersionRecord]]:
        """Return every version of every model, by name and version."""
        return [
            (name, version, record)
            for name in sorted(self._entries)
            for version, record in self._entries[name].versions.items()
        ]

    def set_state(self, name: str, version: int, state: State, reason: str = "") -> None:
        """Record the state of a version that does not serve. A serving version keeps serving: `swap` replaces it."""
        with self._changes:
            entry = self._entries.setdefault(name, Entry())
            old = entry.versions.get(version)
            if old is None or old.model is None:
                self._replace(entry, {**entry.versions, version: VersionRecord(state, reason)})

    def announce(self, name: str) -> None:
        """Record that a model loads whose versions are not known yet; `retract` undoes it."""
        with self._changes:
            entry = self._entries.setdefault(name, Entry())
            if set(entry.versions) <= {NO_VERSION}:
                self._replace(entry, {NO_VERSION: VersionRecord(State.LOADING)})

    def stop_loading(self, name: str, reason: str) -> None:
        """Record that the versions that are LOADING are no longer: their load was canceled."""
        with self._changes:
            entry = self._entries.get(name)
            if entry is not None:
                stopped = VersionRecord(State.UNAVAILABLE, reason)
                versions = {v: stopped if r.state is State.LOADING else r for v, r in entry.versions.items()}
                self._replace(entry, versions)

    def explain(self, name: str, reason: str) -> None:
        """Record why a model has no version at all; where a version says more, that stands."""
        with self._changes:
            entry = self._entries.setdefault(name, Entry())
            if set(entry.versions) <= {NO_VERSION}:
                self._replace(entry, {NO_VERSION: VersionRecord(State.UNAVAILABLE, reason)})

    def remark(self, name: str, version: int, reason: str) -> None:
        """Record why a version that serves, and goes on to, could not be changed; nothing once it could."""
        with self._changes:
            entry = self._entries[name]
            record = entry.versions.get(version)
            if record is not None and record.model is not None and record.reason != reason:
                self._replace(entry, {**entry.versions, version: replace(record, reason=reason)})

    def remark_all(self, name: str, reason: str) -> None:
        """Do as `remark` does for every version that serves."""
        for model in self.ready(name):
            self.remark(name, model.version, reason)

    def retract(self, name: str) -> None:
        """Undo `explain` or `announce`: the model is not wanted any more, or its versions are known."""
        with self._changes:
            entry = self._entries.get(name)
            if entry is not None and NO_VERSION in entry.versions:
                self._replace(entry, {})

    def settle(self, name: str, version: int, state: State, reason: str = "") -> None:
        """Record how unloading ended, unless the version was loaded again meanwhile."""
        with self._changes:
            entry = self._entries[name]
            if version in entry.versions and entry.versions[version].state is State.UNLOADING:
                if entry.listed is not None and version in entry.listed.versions:
                    reason = LAZY
                self._replace(entry, {**entry.versions, version: VersionRecord(state, reason)})

    def swap(self, name: str, models: Mapping[int, LoadedModel]) -> list[LoadedModel]:
        """Let exactly `models` serve from now on, in one step; return those that served before.

        Versions that served and are not among `models` become UNLOADING. A version that failed to load is forgotten: whatever was wrong with it,
        it is not wanted any more.
        """
        if self.cold is None or not models:
            return self._swap(name, models)
        with self.cold.arriving(name, models):
            return self._swap(name, models)

    def _swap(self, name: str, models: Mapping[int, LoadedModel]) -> list[LoadedModel]:
        with self._changes:
            entry = self._entries.setdefault(name, Entry())
            versions: dict[int, VersionRecord] = {}
            for version, record in entry.versions.items():
                if record.model is not None:
                    versions[version] = VersionRecord(State.UNLOADING)
                elif record.state is State.UNLOADING or record.reason == UNLOADED or record.reason.startswith(LAZY):
                    versions[version] = record
            for version, model in models.items():
                versions[version] = VersionRecord(State.READY, "", model)
            old = [record.model for record in entry.versions.values() if record.model is not None]
            self._replace(entry, versions)
            return old

    def index(self, key: str, name: str = "") -> list[ModelIndex]:
        """Return the index lines of the model `key`, which clients call `name` if that is not the same."""
        entry, name = self._entries.get(key), name or key
        if entry is None or not entry.versions:
            return [ModelIndex(name)]
        return [
            ModelIndex(name, str(version) if version != NO_VERSION else "", record.state.value, record.reason)
            for version, record in entry.versions.items()
        ]

    @staticmethod
    def _replace(entry: Entry, versions: Mapping[int, VersionRecord]) -> None:
        versions = dict(sorted(versions.items()))  # here, so that no reader sorts them
        ready = [version for version, record in versions.items() if record.model is not None]
        entry.versions = versions
        entry.latest = versions[ready[-1]].model if ready else None
