"""Rules for instance groups, after normalization."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tritonpy.config.known_backends import TENSORRT_PLATFORM
from tritonpy.config.problem import ConfigProblem
from tritonpy_protos.model_config_pb2 import ModelConfig, ModelInstanceGroup


def group_problems(config: ModelConfig, gpus: Sequence[int], min_compute_capability: float) -> Iterator[ConfigProblem]:
    """Yield the problems of instance groups on this machine with the GPUs `gpus`."""
    if config.HasField("ensemble_scheduling"):
        return
    if not config.instance_group:
        yield ConfigProblem("instance_group", f"must specify one or more 'instance group's for {config.name}")
    for index, group in enumerate(config.instance_group):
        path = f"instance_group[{index}]"
        subject = f"instance group {group.name} of model {config.name}"
        yield from _device_problems(group, path, subject, gpus, min_compute_capability)
        yield from _profile_problems(group, path, subject, config.platform)


def _device_problems(
    group: ModelInstanceGroup, path: str, subject: str, gpus: Sequence[int], min_compute_capability: float
) -> Iterator[ConfigProblem]:
    kind = ModelInstanceGroup.Kind.Name(group.kind)
    if group.kind == ModelInstanceGroup.KIND_AUTO:
        yield ConfigProblem(f"{path}.kind", f"{subject} has unexpected kind KIND_AUTO")
    elif group.kind != ModelInstanceGroup.KIND_GPU:
        if group.gpus:
            yield ConfigProblem(f"{path}.gpus", f"{subject} has kind {kind} but specifies one or more GPUs")
    elif not group.gpus:
        lack = "specifies no GPUs" if gpus else "no GPUs are available"
        yield ConfigProblem(f"{path}.kind", f"{subject} has kind KIND_GPU but {lack}")
    for index, gpu in enumerate(group.gpus if group.kind == ModelInstanceGroup.KIND_GPU else ()):
        if gpu not in gpus:
            yield ConfigProblem(
                f"{path}.gpus[{index}]",
                f"{subject} specifies invalid or unsupported gpu id {gpu}. GPUs with at least the minimum required CUDA "
                f"compute compatibility of {min_compute_capability:.6f} are: {', '.join(map(str, gpus))}",
            )


def _profile_problems(group: ModelInstanceGroup, path: str, subject: str, platform: str) -> Iterator[ConfigProblem]:
    if group.profile and platform != TENSORRT_PLATFORM:
        yield ConfigProblem(
            f"{path}.profile",
            f"{subject} and platform {platform}specifies profile field which is only supported for TensorRT models",
        )
        return
    for index, profile in enumerate(group.profile):
        if not profile.isdecimal():
            yield ConfigProblem(
                f"{path}.profile[{index}]",
                f"{subject} and platform {platform} specifies invalid profile {profile}. The field should contain the "
                "string representation of a non-negative integer.",
            )
