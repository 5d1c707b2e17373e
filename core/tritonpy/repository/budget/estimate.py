"""Memory estimates from file sizes, for models that were never loaded. Pure functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tritonpy.config.server.sections import HOST
from tritonpy_protos.model_config_pb2 import ModelInstanceGroup

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig

PROCESS = 32 << 20
"""Bytes that an instance's process uses before it loads anything."""


def estimate(
    config: ModelConfig, versions: Sequence[int], file_sizes: Mapping[str, int], processes: bool
) -> dict[str, int]:
    """Return the estimated bytes by device for `versions` of a normalized configuration.

    `file_sizes` are the sizes of the model's files by relative path. The files of a version are
    assumed to be in memory once on each device with instances, or once per instance if instances
    are `processes`.
    """
    demand: Counter[str] = Counter()
    for version in versions:
        size = sum(size for path, size in file_sizes.items() if path.startswith(f"{version}/"))
        copies = _copies(config, processes)
        for device, count in copies.items():
            demand[device] += size * count
        if processes:
            demand[HOST] += PROCESS * sum(copies.values())
    return dict(demand)


def _copies(config: ModelConfig, processes: bool) -> Counter[str]:
    copies: Counter[str] = Counter()
    for group in config.instance_group:
        on_gpu = group.kind == ModelInstanceGroup.KIND_GPU
        for device in [str(gpu) for gpu in group.gpus] if on_gpu else [HOST]:
            copies[device] += group.count
    return copies if processes else Counter(dict.fromkeys(copies, 1))
