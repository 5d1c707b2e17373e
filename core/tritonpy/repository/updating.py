"""Versions that go on serving when a model is loaded again: with more instances or fewer, and without a pause."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tritonpy.config.instances_apart import with_instances_of
from tritonpy.errors import Internal
from tritonpy.model.loaded import LoadedModel
from tritonpy.repository.loader import ModelLoader
from tritonpy.repository.loading import reason_of
from tritonpy.repository.prepared import Prepared
from tritonpy.repository.table import ModelTable
from tritonpy.runners.instances import Instances
from tritonpy.runners.roster import RosterChange
from tritonpy_protos.model_config_pb2 import ModelConfig


@dataclass(frozen=True, slots=True)
class InstanceUpdate:
    """Serving versions, each with the configuration that then holds and the change that its instances are ready for."""

    changes: Sequence[tuple[LoadedModel, ModelConfig, Instances, RosterChange]] = ()

    @property
    def models(self) -> list[LoadedModel]:
        """The versions."""
        return [model for model, _, _, _ in self.changes]

    def make(self) -> None:
        """Let the new configurations hold, and their instances serve."""
        for model, config, instances, change in self.changes:
            model.context.config = config
            instances.make(change)

    def drop(self) -> None:
        """End what was made ready: everything stays as it is."""
        for _, _, instances, change in self.changes:
            instances.drop(change)


class InstanceUpdates:
    """Makes updates ready; the table is told of what fails."""

    def __init__(self, table: ModelTable, loader: ModelLoader) -> None:
        self._table = table
        self._loader = loader

    def prepare(self, models: Sequence[LoadedModel], new: Prepared) -> InstanceUpdate:
        """Start the instances that serving versions need beyond those that they have.

        Raises Internal with the reason, and then nothing is started.
        """
        changes: list[tuple[LoadedModel, ModelConfig, Instances, RosterChange]] = []
        for model in models:
            try:
                config = self._config(model.config, new)
                instances = model.instances
                assert instances is not None, "an ensemble is never updated in place: this is a bug"  # noqa: S101
                if new.attempt is not None:
                    model.context.cancellation = new.attempt.cancellation
                changes.append((model, config, instances, instances.prepare(config)))
            except Exception as error:
                InstanceUpdate(changes).drop()
                reason = reason_of(error)
                self._table.remark(new.key, model.version, reason)
                raise Internal(f"version {model.version} is at READY state: {reason};") from error
        for model in models:
            self._table.remark(new.key, model.version, "")
        return InstanceUpdate(changes)

    def _config(self, old: ModelConfig, new: Prepared) -> ModelConfig:
        config = self._loader.normalized(with_instances_of(old, new.given))
        self._loader.check(config, new)
        return config
