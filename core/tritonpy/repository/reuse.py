"""Which versions of a model a load makes anew, and which go on: those whose files and configuration did not change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tritonpy.api.repository import ModelListing
from tritonpy.config.instances_apart import apart_from_instances
from tritonpy.model.loaded import LoadedModel
from tritonpy.repository.prepared import Prepared
from tritonpy.repository.reading import CONFIG_FILE
from tritonpy_protos.model_config_pb2 import ModelConfig

Origins = Mapping[int, Prepared]
"""What each serving version was loaded from."""


@dataclass(frozen=True, slots=True)
class Reuse:
    """`built` are to be loaded, `changed` go on with the instances that the new configuration asks for, `left` as they are."""

    built: Sequence[int]
    changed: Sequence[LoadedModel] = ()
    left: Sequence[LoadedModel] = ()


def reuse(
    new: Prepared,
    chosen: Sequence[int],
    serving: Sequence[LoadedModel],
    origins: Origins,
    normalized: Callable[[ModelConfig], ModelConfig],
) -> Reuse:
    """Decide for the `chosen` versions of `new`; what a request that names versions does not name is left alone.

    A configuration that was asked back from the server counts as the one that it was completed from. A model with agents is loaded anew: they may do
    anything.
    """
    kept: list[LoadedModel] = []
    if any(model.version in chosen for model in serving):
        asked = apart_from_instances(new.given), apart_from_instances(normalized(new.given))
        kept = [
            model
            for model in serving
            if model.version in chosen and _unchanged(model, origins[model.version], new, asked)
        ]
    going_on = {model.version for model in kept}
    built = [version for version in chosen if version not in going_on]
    left = [model for model in serving if new.named and model.version not in new.named]
    return Reuse(built, kept, left)


def _unchanged(model: LoadedModel, old: Prepared, new: Prepared, asked: tuple[ModelConfig, ModelConfig]) -> bool:
    given, normalized = asked
    return (
        not (old.given.model_repository_agents.agents or new.given.model_repository_agents.agents)
        and _content(old.listing, model.version) == _content(new.listing, model.version)
        and (apart_from_instances(old.given) == given or apart_from_instances(model.config) == normalized)
    )


def _content(listing: ModelListing, version: int) -> Mapping[str, str]:
    """Return the files of a version and those beside the versions, but no configurations: what those say is compared by itself."""
    return {
        path: fingerprint
        for path, fingerprint in listing.files.items()
        if path != CONFIG_FILE
        and not path.startswith("configs/")
        and (not _is_version(folder := path.partition("/")[0]) or folder == str(version))
    }


def _is_version(folder: str) -> bool:
    return folder.isascii() and folder.isdigit()
