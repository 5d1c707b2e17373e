"""Plan of a reload: which versions are loaded, and which keep serving because they are unchanged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tritonpy.api.repository import ModelListing
from tritonpy.config.instance_changes import without_instances
from tritonpy.model.loaded_model import LoadedModel
from tritonpy.repository.config_file import CONFIG_FILE
from tritonpy.repository.prepared_model import PreparedModel
from tritonpy_protos.model_config_pb2 import ModelConfig

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
        requested = without_instances(new.original_config), without_instances(normalized(new.original_config))
        kept = [
            model
            for model in serving
            if model.version in chosen and _unchanged(model, origins[model.version], new, requested)
        ]
    kept_versions = {model.version for model in kept}
    to_load = [version for version in chosen if version not in kept_versions]
    untouched = [model for model in serving if new.requested_versions and model.version not in new.requested_versions]
    return ReusePlan(to_load, kept, untouched)


def _unchanged(
    model: LoadedModel, old: PreparedModel, new: PreparedModel, requested: tuple[ModelConfig, ModelConfig]
) -> bool:
    given, normalized = requested
    return (
        not (old.original_config.model_repository_agents.agents or new.original_config.model_repository_agents.agents)
        and _content(old.listing, model.version) == _content(new.listing, model.version)
        and (without_instances(old.original_config) == given or without_instances(model.config) == normalized)
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
