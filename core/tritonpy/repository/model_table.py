"""The model table: versions, states and reasons, and the lookup that every request makes."""

from __future__ import annotations

import enum
import threading
from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from tritonpy.api.engine import ModelIndex
from tritonpy.model.loaded_model import LoadedModel
from tritonpy_types.errors import InvalidArgument, NotFound, Unavailable

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig
    from tritonpy_types import InferRequest

UNLOADED = "unloaded"
LAZY = "not loaded, it loads at its first request"
NO_VERSION = 0  # placeholder for a model whose versions are not known


class State(enum.Enum):
    """Triton's states of a version."""

    READY = "READY"
    UNAVAILABLE = "UNAVAILABLE"
    LOADING = "LOADING"
    UNLOADING = "UNLOADING"


@dataclass(frozen=True, slots=True)
class VersionRecord:
    """The state of one version, its reason, and the model while it is READY."""

    state: State
    reason: str = ""
    model: LoadedModel | None = None


@dataclass(frozen=True, slots=True)
class LazyListing:
    """A lazy model: its configuration if its files define it, and its versions."""

    config: ModelConfig | None
    versions: tuple[int, ...]


@dataclass(slots=True)
class Entry:
    """One model.

    `versions`, ascending, is replaced as a whole and never modified, so that readers need no lock.
    `failed` says that the last load of a lazy model failed.
    """

    versions: Mapping[int, VersionRecord] = field(default_factory=dict)
    latest: LoadedModel | None = None
    lazy_listing: LazyListing | None = None
    failed: bool = False


class LazyModelLoader(Protocol):
    """Loads lazy models: the part of `ResidencyPolicy` that the table and its users call."""

    def hold(self, request: InferRequest) -> bool:
        """Own `request` until its model is loaded; False if the model is not lazy."""

    def start_load(self, name: str) -> None:
        """Start to load the model `name` without a request for it."""

    def handover(self, key: str, models: Mapping[int, LoadedModel]) -> AbstractContextManager[None]:
        """Pass waiting requests to `models`, then run the block, which adds them to the table."""


class ModelTable:
    """The models by qualified name. Lookups take no lock; changes are made under one.

    `lazy_loader` loads lazy models; it is None if there never was one.
    """

    def __init__(self) -> None:
        self.lazy_loader: LazyModelLoader | None = None
        self._entries: dict[str, Entry] = {}
        self._lock = threading.Lock()

    def find(self, name: str, version: int = -1) -> LoadedModel:
        """Return the ready model.

        Raises `NotFound`, `Unavailable` or `InvalidArgument` with Triton's text.
        """
        entry = self._entries.get(name)
        if entry is None:
            name, entry = self._find_by_plain_name(name)
        if version == -1:
            if entry.latest is None:
                raise NotFound(f"Request for unknown model: '{name}' has no available versions")
            return entry.latest
        record = entry.versions.get(version)
        if record is None or version == NO_VERSION:
            raise NotFound(f"Request for unknown model: '{name}' version {version} is not found")
        if record.model is None:
            raise Unavailable(
                f"Request for unknown model: '{name}' version {version} is not at ready state"
            )
        return record.model

    def register_name(self, key: str, name: str) -> None:
        """Make the model `key` available under its plain name, too, if models have namespaces."""

    def unregister_name(self, key: str, name: str) -> None:
        """Undo `register_name` for an unloaded model."""

    def _find_by_plain_name(self, name: str) -> tuple[str, Entry]:
        """Return key and entry of a model by its plain name. Raises as `find` does."""
        raise InvalidArgument(f"Request for unknown model: '{name}' is not found")

    def config(self, name: str, version: int = -1) -> ModelConfig:
        """Return the configuration of a ready or lazy model. Raises as `find` does.

        If the files of a lazy model do not define its configuration, it starts to load and
        `Unavailable` is raised.
        """
        try:
            return self.find(name, version).config
        except (NotFound, Unavailable):
            lazy_listing = self.lazy_listing(name, version)
            if lazy_listing is None:
                raise
        if lazy_listing.config is None:
            if self.lazy_loader is not None:
                self.lazy_loader.start_load(name)
            text = f"model '{name}' is being loaded: its files do not define its inputs and outputs"
            raise Unavailable(text, retry_after_s=1)
        return lazy_listing.config

    def key_of(self, name: str) -> str:
        """Return the qualified name of the model `name`. Raises as `find` does."""
        return name if name in self._entries else self._find_by_plain_name(name)[0]

    def lazy_listing(self, name: str, version: int = -1) -> LazyListing | None:
        """Return the listing of a lazy model that has this version, else None."""
        try:
            lazy_listing = self._entries[self.key_of(name)].lazy_listing
        except (InvalidArgument, NotFound):
            return None
        return (
            lazy_listing
            if lazy_listing is not None and (version == -1 or version in lazy_listing.versions)
            else None
        )

    def can_load(self, name: str, version: int = -1) -> bool:
        """Return whether a request would load a lazy model, which is false after a failed load."""
        return (
            self.lazy_listing(name, version) is not None
            and not self._entries[self.key_of(name)].failed
        )

    def add_lazy(self, key: str, name: str, lazy_listing: LazyListing, failure: str = "") -> None:
        """List a lazy model that is not loaded; `failure` says why its last load failed."""
        self.register_name(key, name)
        reason = f"{LAZY}; the last load failed: {failure}" if failure else LAZY
        with self._lock:
            entry = self._entries.setdefault(key, Entry())
            entry.lazy_listing, entry.failed = lazy_listing, bool(failure)
            kept = {
                version: record
                for version, record in entry.versions.items()
                if record.model is not None or record.state is State.UNLOADING
            }
            absent = VersionRecord(State.UNAVAILABLE, reason)
            self._replace(
                entry, {**dict.fromkeys(lazy_listing.versions or (NO_VERSION,), absent), **kept}
            )

    def remove_lazy(self, key: str) -> None:
        """Undo `add_lazy`."""
        with self._lock:
            entry = self._entries[key]
            entry.lazy_listing, entry.failed = None, False
            kept = {
                v: record
                for v, record in entry.versions.items()
                if not record.reason.startswith(LAZY)
            }
            self._replace(entry, kept)

    def ready(self, name: str) -> list[LoadedModel]:
        """Return the ready versions of `name`, ascending."""
        entry = self._entries.get(name)
        if entry is None:
            try:
                _, entry = self._find_by_plain_name(name)
            except (InvalidArgument, NotFound):
                return []
        return [record.model for record in entry.versions.values() if record.model is not None]

    def versions(self, name: str) -> list[int]:
        """Return the ready versions, ascending, or those of a lazy model that is not loaded."""
        lazy_listing = self.lazy_listing(name)
        return [model.version for model in self.ready(name)] or list(
            lazy_listing.versions if lazy_listing is not None else ()
        )

    def all_ready(self) -> list[LoadedModel]:
        """Return every ready version of every model, by name and version."""
        return [model for name in sorted(self._entries) for model in self.ready(name)]

    def serving_keys(self, name: str) -> list[str]:
        """Return the ready models with the plain name `name`."""
        return [key for key in self._keys_named(name) if self.ready(key)]

    def _keys_named(self, name: str) -> Collection[str]:
        return (name,) if name in self._entries else ()

    def records(self) -> list[tuple[str, int, VersionRecord]]:
        """Return every version of every model, by name and version."""
        return [
            (name, version, record)
            for name in sorted(self._entries)
            for version, record in self._entries[name].versions.items()
        ]

    def set_state(self, name: str, version: int, state: State, reason: str = "") -> None:
        """Record the state of a version that does not serve; `swap` replaces serving versions."""
        with self._lock:
            entry = self._entries.setdefault(name, Entry())
            old = entry.versions.get(version)
            if old is None or old.model is None:
                self._replace(entry, {**entry.versions, version: VersionRecord(state, reason)})

    def mark_loading(self, name: str) -> None:
        """Record that a model loads whose versions are not known yet.

        `clear_placeholder` undoes it.
        """
        with self._lock:
            entry = self._entries.setdefault(name, Entry())
            if set(entry.versions) <= {NO_VERSION}:
                self._replace(entry, {NO_VERSION: VersionRecord(State.LOADING)})

    def cancel_loading(self, name: str, reason: str) -> None:
        """Record that the load of the LOADING versions was canceled."""
        with self._lock:
            entry = self._entries.get(name)
            if entry is not None:
                stopped = VersionRecord(State.UNAVAILABLE, reason)
                versions = {
                    v: stopped if r.state is State.LOADING else r for v, r in entry.versions.items()
                }
                self._replace(entry, versions)

    def set_model_reason(self, name: str, reason: str) -> None:
        """Record why a model has no version; ignored if it has versions with their own reasons."""
        with self._lock:
            entry = self._entries.setdefault(name, Entry())
            if set(entry.versions) <= {NO_VERSION}:
                self._replace(entry, {NO_VERSION: VersionRecord(State.UNAVAILABLE, reason)})

    def set_remark(self, name: str, version: int, reason: str) -> None:
        """Record why a serving version could not be changed; an empty reason clears it."""
        with self._lock:
            entry = self._entries[name]
            record = entry.versions.get(version)
            if record is not None and record.model is not None and record.reason != reason:
                self._replace(entry, {**entry.versions, version: replace(record, reason=reason)})

    def set_remarks(self, name: str, reason: str) -> None:
        """Call `set_remark` for every serving version."""
        for model in self.ready(name):
            self.set_remark(name, model.version, reason)

    def clear_placeholder(self, name: str) -> None:
        """Undo `set_model_reason` or `mark_loading`."""
        with self._lock:
            entry = self._entries.get(name)
            if entry is not None and NO_VERSION in entry.versions:
                self._replace(entry, {})

    def finish_unload(self, name: str, version: int, state: State, reason: str = "") -> None:
        """Record the state after unloading, unless the version was loaded again meanwhile."""
        with self._lock:
            entry = self._entries[name]
            if version in entry.versions and entry.versions[version].state is State.UNLOADING:
                if entry.lazy_listing is not None and version in entry.lazy_listing.versions:
                    reason = LAZY
                self._replace(entry, {**entry.versions, version: VersionRecord(state, reason)})

    def swap(self, name: str, models: Mapping[int, LoadedModel]) -> list[LoadedModel]:
        """Atomically serve exactly `models`; return those that served before.

        Versions that served and are not in `models` become UNLOADING. The failures of other
        versions are forgotten.
        """
        if self.lazy_loader is None or not models:
            return self._swap(name, models)
        with self.lazy_loader.handover(name, models):
            return self._swap(name, models)

    def _swap(self, name: str, models: Mapping[int, LoadedModel]) -> list[LoadedModel]:
        with self._lock:
            entry = self._entries.setdefault(name, Entry())
            versions: dict[int, VersionRecord] = {}
            for version, record in entry.versions.items():
                if record.model is not None:
                    versions[version] = VersionRecord(State.UNLOADING)
                elif (
                    record.state is State.UNLOADING
                    or record.reason == UNLOADED
                    or record.reason.startswith(LAZY)
                ):
                    versions[version] = record
            for version, model in models.items():
                versions[version] = VersionRecord(State.READY, "", model)
            old = [record.model for record in entry.versions.values() if record.model is not None]
            self._replace(entry, versions)
            return old

    def index(self, key: str, name: str = "") -> list[ModelIndex]:
        """Return the index lines of the model `key`, with `name` as its name for clients."""
        entry, name = self._entries.get(key), name or key
        if entry is None or not entry.versions:
            return [ModelIndex(name)]
        return [
            ModelIndex(
                name,
                str(version) if version != NO_VERSION else "",
                record.state.value,
                record.reason,
            )
            for version, record in entry.versions.items()
        ]

    @staticmethod
    def _replace(entry: Entry, versions: Mapping[int, VersionRecord]) -> None:
        versions = dict(sorted(versions.items()))  # sorted here, so that readers need not
        ready = [version for version, record in versions.items() if record.model is not None]
        entry.versions = versions
        entry.latest = versions[ready[-1]].model if ready else None


class NamespacedTable(ModelTable):
    """A model table with qualified names; unambiguous plain names work, too."""

    def __init__(self) -> None:
        super().__init__()
        self._keys: dict[str, frozenset[str]] = {}

    def register_name(self, key: str, name: str) -> None:
        with self._lock:
            self._keys[name] = self._keys.get(name, frozenset()) | {key}
            self._entries.setdefault(key, Entry())

    def unregister_name(self, key: str, name: str) -> None:
        with self._lock:
            if name in self._keys:
                self._keys[name] -= {key}

    def _keys_named(self, name: str) -> Collection[str]:
        return self._keys.get(name, ())

    def _find_by_plain_name(self, name: str) -> tuple[str, Entry]:
        keys = self._keys.get(name)
        if keys is None:
            return super()._find_by_plain_name(name)
        if not keys:
            raise NotFound(f"Identifier of model '{name}' is not found in global map")
        if len(keys) > 1:
            text = f"There are {len(keys)} identifiers of model '{name}' in global map"
            raise InvalidArgument(f"{text}, model namespace must be provided to resolve ambiguity.")
        (key,) = keys
        return key, self._entries[key]
