"""Selection of versions by the version policy. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig

_LARGEST = 2**63 - 1  # a version is an int64 in every protocol


def version_folders(files: Iterable[str]) -> tuple[list[int], list[str]]:
    """Return the versions in a model's relative paths, ascending, and the ignored folders.

    A version folder is a positive 64-bit number without leading zeros. Other folders with numeric
    names are ignored; the rest belong to the model.
    """
    versions, ignored = set(), set()
    for path in files:
        folder, slash, _ = path.partition("/")
        if not slash or not folder.isascii() or not folder.isdigit():
            continue
        if folder.startswith("0") or int(folder) > _LARGEST:
            ignored.add(folder)
        else:
            versions.add(int(folder))
    return sorted(versions), sorted(ignored)


def versions_to_load(config: ModelConfig, available: Iterable[int]) -> tuple[list[int], list[int]]:
    """Return the versions that the policy selects, ascending, and the missing ones it names."""
    present = sorted(available)
    policy = config.version_policy
    missing: list[int] = []
    if policy.HasField("specific"):
        named = set(policy.specific.versions)
        chosen = [version for version in present if version in named]
        missing = sorted(named - set(present))
    elif policy.HasField("all"):
        chosen = present
    else:
        count = policy.latest.num_versions or 1
        chosen = present[-count:]
    return chosen, missing
