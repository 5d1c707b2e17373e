"""Which versions of a model are served. Pure functions over a listing and a version policy."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig

_LARGEST = 2**63 - 1  # a version is an int64 in every protocol


def version_folders(files: Iterable[str]) -> tuple[list[int], list[str]]:
    """Return the versions among a model's relative paths, ascending, and the folders that look like one but are not.

    A version folder is a positive number of 64 bits without leading zeros; folders with other names belong to the model.
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
    """Return the versions that the policy of `config` chooses of `available`, ascending, and those it names that are not there."""
    present = sorted(available)
    policy = config.version_policy
    missing: list[int] = []
    if policy.HasField("specific"):
        wanted = set(policy.specific.versions)
        chosen = [version for version in present if version in wanted]
        missing = sorted(wanted - set(present))
    elif policy.HasField("all"):
        chosen = present
    else:
        count = policy.latest.num_versions or 1
        chosen = present[-count:]
    return chosen, missing
