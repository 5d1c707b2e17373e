"""In-place updates: serving versions get more or fewer instances without a pause."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tritonpy.config.instance_changes import with_instances_of
from tritonpy.errors import Internal
from tritonpy.model.loaded_model import LoadedModel
from tritonpy.repository.model_loader import ModelLoader
from tritonpy.repository.model_table import ModelTable
from tritonpy.repository.prepared_model import PreparedModel
from tritonpy.repository.version_loader import state_reason
from tritonpy.runners.instance_slots import InstanceChange
from tritonpy.runners.instances import Instances
from tritonpy_protos.model_config_pb2 import ModelConfig


@dataclass(frozen=True, slots=True)
class InstanceUpdate:
    """Serving versions, each with its new configuration and the prepared change of its instances."""

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
        config = self._loader.normalized(with_instances_of(old, new.original_config))
        self._loader.check(config, new)
        return config
