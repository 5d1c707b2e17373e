"""The models that the server knows: versions, states, reasons, and the look-up that every request makes."""

from __future__ import annotations

import enum
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tritonpy.api.engine import ModelIndex
from tritonpy.errors import InvalidArgument, NotFound, Unavailable
from tritonpy.model.loaded import LoadedModel

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig

UNLOADED = "unloaded"
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


@dataclass(slots=True)
class Entry:
    """One model. `versions` is replaced as a whole, never changed: readers need no lock."""

    versions: Mapping[int, VersionRecord] = field(default_factory=dict)
    latest: LoadedModel | None = None


class ModelTable:
    """Name -> entry. Look-ups take no lock; changes are made under one."""

    def __init__(self) -> None:
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
        """Return the configuration of the ready model. Raises as `find` does."""
        return self.find(name, version).config

    def ready(self, name: str) -> list[LoadedModel]:
        """Return the ready versions of `name`, ascending."""
        entry = self._entries.get(name)
        if entry is None:
            try:
                _, entry = self._elsewhere(name)
            except (InvalidArgument, NotFound):
                return []
        return [record.model for _, record in sorted(entry.versions.items()) if record.model is not None]

    def all_ready(self) -> list[LoadedModel]:
        """Return every ready version of every model, by name and version."""
        return [model for name in sorted(self._entries) for model in self.ready(name)]

    def serving(self) -> dict[str, str]:
        """Return the plain name of every model that has a ready version."""
        return {key: entry.latest.name for key, entry in list(self._entries.items()) if entry.latest is not None}

    def records(self) -> list[tuple[str, int, VersionRecord]]:
        """Return every version of every model, by name and version."""
        return [
            (name, version, record)
            for name in sorted(self._entries)
            for version, record in sorted(self._entries[name].versions.items())
        ]

    def set_state(self, name: str, version: int, state: State, reason: str = "") -> None:
        """Record the state of a version that does not serve. A serving version keeps serving: `swap` replaces it."""
        with self._changes:
            entry = self._entries.setdefault(name, Entry())
            old = entry.versions.get(version)
            if old is None or old.model is None:
                self._replace(entry, {**entry.versions, version: VersionRecord(state, reason)})

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
            if record is not None and record.model is not None:
                self._replace(entry, {**entry.versions, version: replace(record, reason=reason)})

    def retract(self, name: str) -> None:
        """Undo `explain`: nobody wants the model any more."""
        with self._changes:
            entry = self._entries.get(name)
            if entry is not None and NO_VERSION in entry.versions:
                self._replace(entry, {})

    def settle(self, name: str, version: int, state: State, reason: str = "") -> None:
        """Record how unloading ended, unless the version was loaded again meanwhile."""
        with self._changes:
            entry = self._entries[name]
            if version in entry.versions and entry.versions[version].state is State.UNLOADING:
                self._replace(entry, {**entry.versions, version: VersionRecord(state, reason)})

    def swap(self, name: str, models: Mapping[int, LoadedModel]) -> list[LoadedModel]:
        """Let exactly `models` serve from now on, in one step; return those that served before.

        Versions that served and are not among `models` become UNLOADING. A version that failed to load is forgotten: whatever was wrong with it,
        it is not wanted any more.
        """
        with self._changes:
            entry = self._entries.setdefault(name, Entry())
            versions: dict[int, VersionRecord] = {}
            for version, record in entry.versions.items():
                if record.model is not None:
                    versions[version] = VersionRecord(State.UNLOADING)
                elif record.state is State.UNLOADING or record.reason == UNLOADED:
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
            for version, record in sorted(entry.versions.items())
        ]

    @staticmethod
    def _replace(entry: Entry, versions: Mapping[int, VersionRecord]) -> None:
        ready = [version for version, record in versions.items() if record.model is not None]
        entry.versions = versions
        entry.latest = versions[max(ready)].model if ready else None
