"""Normalization of a configuration: it sets all defaults that Triton sets. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tritonpy_protos.model_config_pb2 import ModelConfig, ModelInstanceGroup

SEQUENCE_IDLE_US = 1_000_000


_CHANGEABLE = ("instance_group", "version_policy")


def without_instances(config: ModelConfig) -> ModelConfig:
    """Return a copy of `config` without its instance groups and version policy."""
    rest = ModelConfig()
    rest.CopyFrom(config)
    for field in _CHANGEABLE:
        rest.ClearField(field)
    return rest


def with_instances_of(config: ModelConfig, other: ModelConfig) -> ModelConfig:
    """Return a copy of `config` with the instance groups and version policy of `other`."""
    result = without_instances(config)
    result.instance_group.extend(other.instance_group)
    if other.HasField("version_policy"):
        result.version_policy.CopyFrom(other.version_policy)
    return result


@dataclass(frozen=True, slots=True)
class InstanceSpec:
    """One instance to create.

    `group` is the index of its instance group, `kind` is CPU, GPU or MODEL. Instances of one group
    on different GPUs share their name, as in Triton. A passive instance is loaded and receives no
    requests.
    """

    name: str
    group: int
    kind: str
    device_id: int
    profiles: tuple[str, ...] = ()
    passive: bool = False


def normalize(
    config: ModelConfig,
    gpus: Sequence[int] = (),
    default_instance_count: int = 1,
    uses_gpu: bool = False,
    preferred: Sequence[ModelInstanceGroup] = (),
) -> ModelConfig:
    """Return `config` with its defaults set.

    They are version policy, preferred batch sizes, idle time, pinned memory and instance groups.
    `gpus` are the ids of the server's GPUs. `default_instance_count` is the backend's count for CPU
    groups that set none. `uses_gpu`: the backend uses a GPU if it may choose. `preferred` are the
    backend's preferred groups, best first. Normalizing twice changes nothing.
    """
    normal = ModelConfig()
    normal.CopyFrom(config)
    if not normal.HasField("version_policy"):
        normal.version_policy.latest.num_versions = 1
    _normalize_scheduling(normal)
    if not normal.HasField("ensemble_scheduling"):
        _normalize_pinned_memory(normal)
        if not normal.instance_group:
            _add_group(normal, gpus, preferred)
        for index, group in enumerate(normal.instance_group):
            group.name = group.name or f"{normal.name}_{index}"
            _resolve_kind(group, gpus, uses_gpu)
            for each in preferred:
                _follow_preference(group, each, gpus)
            _set_count_and_gpus(group, gpus, default_instance_count)
    return normal


def _normalize_scheduling(config: ModelConfig) -> None:
    size = config.max_batch_size
    if config.HasField("dynamic_batching"):
        dynamic = config.dynamic_batching
        if size > 0 and not dynamic.preferred_batch_size:
            dynamic.preferred_batch_size.append(size)
    if config.HasField("sequence_batching"):
        sequence = config.sequence_batching
        sequence.max_sequence_idle_microseconds = (
            sequence.max_sequence_idle_microseconds or SEQUENCE_IDLE_US
        )
        if size > 0 and sequence.HasField("oldest") and not sequence.oldest.preferred_batch_size:
            sequence.oldest.preferred_batch_size.append(size)


def _normalize_pinned_memory(config: ModelConfig) -> None:
    for name in ("input_pinned_memory", "output_pinned_memory"):
        if not config.optimization.HasField(name):
            getattr(config.optimization, name).enable = True


def _add_group(
    config: ModelConfig, gpus: Sequence[int], preferred: Sequence[ModelInstanceGroup]
) -> None:
    """Add the first preferred group that this machine can run, or else a group without settings."""
    group = config.instance_group.add(name=config.name)
    for each in preferred:
        if each.kind != ModelInstanceGroup.KIND_GPU or gpus:
            group.kind, group.count = each.kind, each.count
            if each.kind == ModelInstanceGroup.KIND_AUTO:
                group.gpus.extend(each.gpus)
            return


def _follow_preference(
    group: ModelInstanceGroup, preferred: ModelInstanceGroup, gpus: Sequence[int]
) -> None:
    """Set what `group` leaves open as a preferred group of the same kind does."""
    if group.kind != preferred.kind:
        return
    if group.kind == ModelInstanceGroup.KIND_GPU and preferred.gpus and not group.gpus:
        group.gpus.extend(number for number in preferred.gpus if number in gpus)
        if not group.gpus:
            return
    if group.count < 1:
        group.count = preferred.count


def _resolve_kind(group: ModelInstanceGroup, gpus: Sequence[int], uses_gpu: bool) -> None:
    if group.kind == ModelInstanceGroup.KIND_AUTO:
        # A group that lists GPUs uses them, regardless of the backend's preference.
        uses_gpus = bool(gpus) and set(group.gpus) <= set(gpus) and (uses_gpu or bool(group.gpus))
        group.kind = ModelInstanceGroup.KIND_GPU if uses_gpus else ModelInstanceGroup.KIND_CPU


def _set_count_and_gpus(group: ModelInstanceGroup, gpus: Sequence[int], default_count: int) -> None:
    if group.count < 1:
        group.count = default_count if group.kind == ModelInstanceGroup.KIND_CPU else 1
    if group.kind == ModelInstanceGroup.KIND_GPU and not group.gpus:
        group.gpus.extend(gpus)


def instance_specs(config: ModelConfig) -> list[InstanceSpec]:
    """Return the instances of a normalized configuration in the order of their creation."""
    return [
        spec
        for index, group in enumerate(config.instance_group)
        for number in range(group.count)
        for spec in _specs(group, index, f"{group.name}_{number}")
    ]


def _specs(group: ModelInstanceGroup, index: int, name: str) -> list[InstanceSpec]:
    kind = ModelInstanceGroup.Kind.Name(group.kind).removeprefix("KIND_")
    devices = group.gpus if group.kind == ModelInstanceGroup.KIND_GPU else (0,)
    return [
        InstanceSpec(name, index, kind, device, tuple(group.profile), group.passive)
        for device in devices
    ]
