"""The memory demand of a model: measured, declared by its configuration, or estimated."""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tritonpy.config import parameter_bytes
from tritonpy.repository import HOST, LoadedModel, ModelPlacement, PreparedModel
from tritonpy_protos.model_config_pb2 import ModelConfig, ModelInstanceGroup
from tritonpy_residency.sizes import (
    ALL,
    Sizes,
    bytes_in,
    max_sizes,
    scale_sizes,
    sizes_of,
    sum_sizes,
)

DECLARED = "memory_bytes"
"""The parameter that declares a model's demand: host bytes, or by device: `cpu:512MiB,0:2GiB`."""

PROCESS = 32 << 20
"""Bytes that an instance's process uses before it loads anything."""


@dataclass(frozen=True, slots=True)
class MemoryDemand:
    """The memory that a load of `content` needs, and the `source` of the number.

    `estimated` and `declared` are set regardless of the source.
    """

    sizes: Sizes
    source: str
    estimated: Sizes
    declared: Sizes
    content: str


class DemandEstimator:
    """Estimates demands, and remembers measurements by files and configuration."""

    def __init__(self, placement: ModelPlacement) -> None:
        self._placement = placement
        self._measured: dict[str, Sizes] = {}
        self._ratios: dict[str, float] = {}
        self._guard = threading.Lock()

    def demand(self, prepared: PreparedModel) -> MemoryDemand:
        """Return the demand of `prepared`. Raises `InvalidArgument` for an invalid declaration."""
        config = self._placement.normalized(prepared.config)
        declared = declared_sizes(config)
        chosen = prepared.versions or prepared.selected_versions()[0]
        processes = bool(chosen) and self._placement.in_processes(prepared, config, chosen[-1])
        estimated = estimate(config, chosen, _file_sizes(prepared.directory), processes)
        content = content_digest(prepared)
        with self._guard:
            measured = self._measured.get(content)
            ratio = self._ratios.get(prepared.key, 1.0)
        if measured is not None:
            return MemoryDemand(
                max_sizes(measured, declared), "measured", estimated, declared, content
            )
        if declared:
            return MemoryDemand(declared, "declared", estimated, declared, content)
        return MemoryDemand(
            scale_sizes(estimated, ratio), "estimated", estimated, declared, content
        )

    def record_measured(
        self, key: str, demand: MemoryDemand, models: Iterable[LoadedModel]
    ) -> Sizes:
        """Return and remember the memory of the loaded `models` of the model `key`.

        Returns the sizes of `demand` if no backend reports its memory.
        """
        found = _measured_sizes(models)
        if not bytes_in(found, ALL):
            return demand.sizes
        with self._guard:
            self._measured[demand.content] = max_sizes(
                found, self._measured.get(demand.content, {})
            )
            estimated = bytes_in(demand.estimated, ALL)
            # Other versions of the model's files probably have the same ratio of memory to file
            # size.
            if estimated:
                self._ratios[key] = bytes_in(found, ALL) / estimated
        return max_sizes(found, demand.declared)

    @staticmethod
    def measured(demand: MemoryDemand, models: Iterable[LoadedModel]) -> Sizes:
        """Return the memory of models with more instances than configured; remember nothing."""
        found = _measured_sizes(models)
        return max_sizes(found, demand.declared) if bytes_in(found, ALL) else demand.sizes


def _measured_sizes(models: Iterable[LoadedModel]) -> dict[str, int]:
    return sum_sizes(
        sizes_of(model.runner.memory_usage()) for model in models if model.runner is not None
    )


def declared_sizes(config: ModelConfig) -> dict[str, int]:
    """Return the sizes that the configuration declares. Raises `InvalidArgument`."""
    text = config.parameters[DECLARED].string_value if DECLARED in config.parameters else ""
    sizes: dict[str, int] = {}
    for part in filter(None, text.split(",")):
        device, colon, size = part.strip().rpartition(":")
        sizes[device if colon else HOST] = parameter_bytes(DECLARED, size)
    return sizes


def content_digest(prepared: PreparedModel) -> str:
    """Return a digest that is equal for loads of the same files and configuration."""
    digest = hashlib.sha256(repr((*prepared.versions,)).encode())
    digest.update(prepared.original_config.SerializeToString(deterministic=True))
    for path, fingerprint in sorted(prepared.listing.files.items()):
        digest.update(f"{path}\0{fingerprint}\0".encode("utf-8", "surrogateescape"))
    return f"{prepared.key}\0{digest.hexdigest()}"


def _file_sizes(folder: Path) -> dict[str, int]:
    """Return the size of each file below `folder`."""
    sizes: dict[str, int] = {}
    for path in folder.rglob("*"):
        try:
            if path.is_file():
                sizes[path.relative_to(folder).as_posix()] = path.stat().st_size
        except OSError:
            continue
    return sizes


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
