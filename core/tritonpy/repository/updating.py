"""A load that changes instances alone: what serves goes on serving, with more of them or fewer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tritonpy.api.repository import ModelListing
from tritonpy.errors import Internal
from tritonpy.model.loaded import LoadedModel
from tritonpy.repository.loader import ModelLoader, Prepared
from tritonpy.repository.loading import reason_of
from tritonpy.repository.reading import CONFIG_FILE
from tritonpy.repository.table import ModelTable
from tritonpy.repository.versions import version_folders, versions_to_load
from tritonpy.runners.instances import Instances
from tritonpy.runners.roster import RosterChange
from tritonpy_protos.model_config_pb2 import ModelConfig

_CHANGEABLE = ("instance_group", "version_policy")


@dataclass(frozen=True, slots=True)
class InstanceUpdate:
    """The serving versions of a model, each with the change that its instances are ready for; `config` is what then holds."""

    config: ModelConfig
    changes: Sequence[tuple[LoadedModel, Instances, RosterChange]]

    def make(self) -> None:
        """Let the new configuration hold, and its instances serve."""
        for model, instances, change in self.changes:
            model.context.config = self.config
            instances.make(change)

    def drop(self) -> None:
        """End what was made ready: everything stays as it is."""
        for _, instances, change in self.changes:
            instances.drop(change)


class InstanceUpdates:
    """Decides whether a load is no more than an update, and makes it ready; the table is told of what fails."""

    def __init__(self, table: ModelTable, loader: ModelLoader) -> None:
        self._table = table
        self._loader = loader

    def may_update(self, old: Prepared, new: Prepared) -> bool:
        """Say whether `new` asks for the versions that serve, loaded as `old` says, as they are, but perhaps with other instances.

        A configuration that was asked back from the server counts as the one that it was completed from. A model with agents is loaded anew: they may do
        anything.
        """
        serving = [model.version for model in self._table.ready(old.key)]
        chosen, _ = versions_to_load(new.given, version_folders(new.listing.files)[0])
        return (
            not (old.given.model_repository_agents.agents or new.given.model_repository_agents.agents)
            and chosen == serving != []
            and _content(old.listing) == _content(new.listing)
            and (_rest(old.given) == _rest(new.given) or _rest(old.config) == _rest(self._loader.normalized(new.given)))
        )

    def prepare(self, old: Prepared, new: Prepared) -> InstanceUpdate:
        """Start the instances that the serving versions need beyond those that they have.

        Raises Internal with the reason, and then nothing is started.
        """
        changes: list[tuple[LoadedModel, Instances, RosterChange]] = []
        models = self._table.ready(old.key)
        version = models[0].version
        try:
            config = self._config(old, new)
            for model in models:
                version = model.version
                instances = model.instances
                assert instances is not None, "an ensemble is never updated in place: this is a bug"  # noqa: S101
                changes.append((model, instances, instances.prepare(config)))
        except Exception as error:
            InstanceUpdate(old.config, changes).drop()
            reason = reason_of(error)
            self._table.remark(old.key, version, reason)
            raise Internal(f"version {version} is at READY state: {reason};") from error
        for model in models:
            self._table.remark(old.key, model.version, "")
        return InstanceUpdate(config, changes)

    def _config(self, old: Prepared, new: Prepared) -> ModelConfig:
        config = _rest(old.config)
        config.instance_group.extend(new.given.instance_group)
        config.version_policy.CopyFrom(new.given.version_policy)
        if not new.given.HasField("version_policy"):
            config.ClearField("version_policy")
        config = self._loader.normalized(config)
        self._loader.check(config, new)
        return config


def _rest(config: ModelConfig) -> ModelConfig:
    rest = ModelConfig()
    rest.CopyFrom(config)
    for field in _CHANGEABLE:
        rest.ClearField(field)
    return rest


def _content(listing: ModelListing) -> Mapping[str, str]:
    """Return the files that are not configurations: what those say is compared by itself."""
    return {
        path: fingerprint
        for path, fingerprint in listing.files.items()
        if path != CONFIG_FILE and not path.startswith("configs/")
    }
