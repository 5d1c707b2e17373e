"""The change that a load makes to a model: versions that are built, and versions that are kept."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tritonpy.api.repository import ModelListing
from tritonpy.model.loaded_model import LoadedModel
from tritonpy.repository.draining import DrainJob
from tritonpy.repository.model_loader import ModelLoader
from tritonpy.repository.model_table import ModelTable, State
from tritonpy.repository.prepared_model import PreparedModel
from tritonpy.repository.version_loader import VersionLoader, state_reason
from tritonpy.runners.instance_slots import InstanceChange
from tritonpy.runners.instances import Instances
from tritonpy_config.config_file import CONFIG_FILE
from tritonpy_config.normalization import with_instances_of, without_instances
from tritonpy_protos.model_config_pb2 import ModelConfig
from tritonpy_types.errors import Internal

log = logging.getLogger("tritonpy.repository")


Origins = Mapping[int, PreparedModel]
"""What each serving version was loaded from, by version."""


@dataclass(frozen=True, slots=True)
class ReusePlan:
    """The versions to load, the versions whose instances are updated, and the untouched ones."""

    to_load: Sequence[int]
    to_update: Sequence[LoadedModel] = ()
    untouched: Sequence[LoadedModel] = ()


def plan_reuse(
    new: PreparedModel,
    chosen: Sequence[int],
    serving: Sequence[LoadedModel],
    origins: Origins,
    normalized: Callable[[ModelConfig], ModelConfig],
) -> ReusePlan:
    """Return the plan for the `chosen` versions of `new`.

    Versions that a request does not name are untouched. A configuration read back from the server
    counts as the one that it was completed from. Models with repository agents are always loaded,
    because agents may do anything.
    """
    kept: list[LoadedModel] = []
    if any(model.version in chosen for model in serving):
        requested = (
            without_instances(new.original_config),
            without_instances(normalized(new.original_config)),
        )
        kept = [
            model
            for model in serving
            if model.version in chosen and _unchanged(model, origins[model.version], new, requested)
        ]
    kept_versions = {model.version for model in kept}
    to_load = [version for version in chosen if version not in kept_versions]
    untouched = [
        model
        for model in serving
        if new.requested_versions and model.version not in new.requested_versions
    ]
    return ReusePlan(to_load, kept, untouched)


def _unchanged(
    model: LoadedModel,
    old: PreparedModel,
    new: PreparedModel,
    requested: tuple[ModelConfig, ModelConfig],
) -> bool:
    given, normalized = requested
    return (
        not (
            old.original_config.model_repository_agents.agents
            or new.original_config.model_repository_agents.agents
        )
        and _content(old.listing, model.version) == _content(new.listing, model.version)
        and (
            without_instances(old.original_config) == given
            or without_instances(model.config) == normalized
        )
    )


def _content(listing: ModelListing, version: int) -> Mapping[str, str]:
    """Return the fingerprints of the files of a version and of those outside version folders.

    Configuration files are excluded, as their contents are compared separately.
    """
    return {
        path: fingerprint
        for path, fingerprint in listing.files.items()
        if path != CONFIG_FILE
        and not path.startswith("configs/")
        and (not _is_version(folder := path.partition("/")[0]) or folder == str(version))
    }


def _is_version(folder: str) -> bool:
    return folder.isascii() and folder.isdigit()


@dataclass(frozen=True, slots=True)
class InstanceUpdate:
    """Serving versions with new configurations and the prepared changes of their instances."""

    changes: Sequence[tuple[LoadedModel, ModelConfig, Instances, InstanceChange]] = ()

    @property
    def models(self) -> list[LoadedModel]:
        """The updated versions."""
        return [model for model, _, _, _ in self.changes]

    def apply(self) -> None:
        """Switch to the new configurations and instances."""
        for model, config, instances, change in self.changes:
            model.context.config = config
            instances.make(change)

    def discard(self) -> None:
        """Close what was prepared; nothing changes."""
        for _, _, instances, change in self.changes:
            instances.drop(change)


class InstanceUpdater:
    """Prepares updates, and records failures in the model table."""

    def __init__(self, table: ModelTable, loader: ModelLoader) -> None:
        self._table = table
        self._loader = loader

    def prepare(self, models: Sequence[LoadedModel], new: PreparedModel) -> InstanceUpdate:
        """Start the additional instances that the serving versions need.

        Raises `Internal` with the reason; nothing is then left started.
        """
        changes: list[tuple[LoadedModel, ModelConfig, Instances, InstanceChange]] = []
        for model in models:
            try:
                config = self._config(model.config, new)
                instances = model.instances
                assert instances is not None, "an ensemble is never updated in place: this is a bug"  # noqa: S101
                if new.attempt is not None:
                    model.context.cancellation = new.attempt.cancellation
                changes.append((model, config, instances, instances.prepare(config)))
            except Exception as error:
                InstanceUpdate(changes).discard()
                reason = state_reason(error)
                self._table.set_remark(new.key, model.version, reason)
                raise Internal(f"version {model.version} is at READY state: {reason};") from error
        for model in models:
            self._table.set_remark(new.key, model.version, "")
        return InstanceUpdate(changes)

    def _config(self, old: ModelConfig, new: PreparedModel) -> ModelConfig:
        config = self._loader.normalized(
            with_instances_of(old, new.original_config), self._loader.preferred_groups(new)
        )
        self._loader.check(config, new)
        return config


if TYPE_CHECKING:
    from tritonpy.repository.memory_reservation import LoadDeadline
    from tritonpy.repository.residency import MemoryBudget


@dataclass(frozen=True, slots=True)
class LoadedVersions:
    """What the serving versions of a model were loaded from.

    `overridden` says that the next plain load replaces them even if the files are unchanged.
    """

    fingerprint: str
    overridden: bool
    origins: Origins

    def drain_jobs(
        self, key: str, removed: Sequence[LoadedModel], kept: Collection[PreparedModel] = ()
    ) -> list[DrainJob]:
        """Return the jobs that drain `removed` versions and free what no `kept` version uses."""
        jobs: list[DrainJob] = []
        for prepared, models in _by_origin(self.origins, removed):
            final = all(each is not prepared for each in kept)
            if models or final:
                jobs.append(DrainJob(key, models, prepared, final))
        return jobs


@dataclass(frozen=True, slots=True)
class LoadChange:
    """The versions that will serve: those built from `prepared`, and those that keep serving."""

    prepared: PreparedModel
    built: Mapping[int, LoadedModel]
    update: InstanceUpdate
    untouched: Sequence[LoadedModel]

    @property
    def kept(self) -> list[LoadedModel]:
        """The versions that keep serving."""
        return [*self.update.models, *self.untouched]

    @property
    def models(self) -> dict[int, LoadedModel]:
        """All versions, by number."""
        return {**{model.version: model for model in self.kept}, **self.built}

    def origins(self, before: LoadedVersions | None) -> Origins:
        """Return what each version is loaded from."""
        built = dict.fromkeys(self.built, self.prepared)
        return (
            built if before is None else {v: built.get(v) or before.origins[v] for v in self.models}
        )

    def discard(self) -> None:
        """Close what was built; the serving versions are unchanged."""
        self.update.discard()
        for model in self.built.values():
            model.close()


class LoadChangeManager:
    """Prepares and applies changes. `memory` is set if memory is limited."""

    def __init__(
        self, table: ModelTable, loader: ModelLoader, version_loader: VersionLoader
    ) -> None:
        self.memory: MemoryBudget | None = None
        self._table = table
        self._loader = loader
        self._version_loader = version_loader
        self._instance_updater = InstanceUpdater(table, loader)

    def prepare(
        self, prepared: PreparedModel, before: LoadedVersions | None, deadline: LoadDeadline | None
    ) -> LoadChange:
        """Build what a load of `prepared` needs; the serving versions are unchanged.

        Raises the error of the load; nothing is then left started.
        """
        chosen = self._version_loader.choose(prepared)
        serving = self._table.ready(prepared.key) if before is not None else []
        origins: Origins = before.origins if before is not None else {}
        plan = plan_reuse(prepared, chosen, serving, origins, self._loader.normalized)
        update = self._instance_updater.prepare(plan.to_update, prepared)
        try:
            if self.memory is not None:
                self._grow(update, serving, origins)
            built = self._build(prepared, plan.to_load, deadline) if plan.to_load else {}
        except BaseException:
            update.discard()
            raise
        return LoadChange(prepared, built, update, plan.untouched)

    def apply(self, change: LoadChange, before: LoadedVersions | None) -> None:
        """Update the versions that keep serving, and free what the change does not need.

        Called when the model table already has the new versions.
        """
        for model, config, _, _ in change.update.changes:
            assert before is not None, "a kept version was loaded before: this is a bug"  # noqa: S101
            origin = before.origins[model.version]
            origin.original_config, origin.config = (
                with_instances_of(origin.original_config, change.prepared.original_config),
                config,
            )
        change.update.apply()
        if change.update.changes:
            log.info("changed the instances of '%s'", change.prepared.key)
        if not change.built:
            change.prepared.release()
        if before is not None:
            self.keep(before, change.kept)

    def keep(self, before: LoadedVersions, kept: Sequence[LoadedModel]) -> None:
        """Record that only `kept` of the versions of `before` keep serving."""
        for origin, models in _by_origin(before.origins, kept):
            origin.versions = tuple(model.version for model in models)
            if self.memory is not None:
                self.memory.keep_versions(origin, models)

    def _grow(
        self, update: InstanceUpdate, serving: Sequence[LoadedModel], origins: Origins
    ) -> None:
        assert self.memory is not None, "memory is limited when this is called: this is a bug"  # noqa: S101
        changed = {model.version for model in update.models}
        for origin, models in _by_origin(origins, serving):
            if changed.intersection(model.version for model in models):
                self.memory.grow(origin, models)

    def _build(
        self, prepared: PreparedModel, versions: Sequence[int], deadline: LoadDeadline | None
    ) -> Mapping[int, LoadedModel]:  # fmt: skip
        prepared.versions = tuple(versions)
        if self.memory is None:
            return self._version_loader.load(prepared, versions)
        self.memory.reserve(prepared, deadline)
        models = self._version_loader.load(prepared, versions)
        try:
            self.memory.settle(prepared, models.values())
        except BaseException:
            for version, model in models.items():
                model.close()
                self._table.set_state(
                    prepared.key,
                    version,
                    State.UNAVAILABLE,
                    "it does not fit into the memory budget",
                )
            raise
        return models


def _by_origin(
    origins: Origins, models: Sequence[LoadedModel]
) -> list[tuple[PreparedModel, list[LoadedModel]]]:
    """Return each distinct origin with those of `models` that were loaded from it."""
    distinct = {id(prepared): prepared for prepared in origins.values()}.values()
    return [
        (each, [model for model in models if origins[model.version] is each]) for each in distinct
    ]
