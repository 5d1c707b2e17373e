"""What a model will need that was never loaded, guessed from its files. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tritonpy.config.server.memory_settings import HOST
from tritonpy_protos.model_config_pb2 import ModelInstanceGroup

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig

PROCESS = 32 << 20
"""What the process of an instance holds before it has loaded anything."""


def estimate(
    config: ModelConfig, versions: Sequence[int], file_sizes: Mapping[str, int], processes: bool
) -> dict[str, int]:
    """Return bytes by place for `versions` of a normalised configuration; `file_sizes` are those of the model's files by relative path.

    The files of a version are taken to be in memory once on each device with instances, and where instances are `processes` once in each of them.
    """
    need: Counter[str] = Counter()
    for version in versions:
        size = sum(size for path, size in file_sizes.items() if path.startswith(f"{version}/"))
        copies = _copies(config, processes)
        for place, count in copies.items():
            need[place] += size * count
        if processes:
            need[HOST] += PROCESS * sum(copies.values())
    return dict(need)


def _copies(config: ModelConfig, processes: bool) -> Counter[str]:
    copies: Counter[str] = Counter()
    for group in config.instance_group:
        on_gpu = group.kind == ModelInstanceGroup.KIND_GPU
        for place in [str(gpu) for gpu in group.gpus] if on_gpu else [HOST]:
            copies[place] += group.count
    return copies if processes else Counter(dict.fromkeys(copies, 1))
