"""All rules in Triton's order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tritonpy_config.known_backends import MIN_COMPUTE_CAPABILITY, TENSORRT_PLATFORM
from tritonpy_config.model_files import file_name_problems
from tritonpy_config.model_fit import MAX_SIZE, WILDCARD, dims_text, element_count
from tritonpy_config.problem import ConfigProblem, entry
from tritonpy_config.validate.batch_strategy import batch_strategy_problems
from tritonpy_config.validate.dynamic import dynamic_batching_problems
from tritonpy_config.validate.ensemble import ensemble_problems
from tritonpy_config.validate.identity import identity_problems
from tritonpy_config.validate.sequence import sequence_problems, state_problems
from tritonpy_config.validate.tensors import tensor_problems
from tritonpy_protos.model_config_pb2 import (
    BatchInput,
    BatchOutput,
    DataType,
    ModelConfig,
    ModelInstanceGroup,
)


def warmup_problems(config: ModelConfig) -> Iterator[ConfigProblem]:
    """Yield the problems of warm-up inputs; a sample with batch size 0 is never run."""
    for index, sample in enumerate(config.model_warmup):
        if sample.batch_size == 0:
            continue
        for name in sorted(sample.inputs):
            tensor, path = sample.inputs[name], entry(f"model_warmup[{index}].inputs", name)
            if any(size < 0 and size != WILDCARD for size in tensor.dims):
                text = f"tensor '{name}' contains an invalid dimension {dims_text(tensor.dims)}"
                yield ConfigProblem(f"{path}.dims", text)
            elif WILDCARD in tensor.dims:
                yield ConfigProblem(
                    f"{path}.dims",
                    (
                        "warmup setting expects all variable-size dimensions are specified for "
                        f"input '{name}'"
                    ),
                )
            elif element_count(tensor.dims) > MAX_SIZE:
                yield ConfigProblem(
                    f"{path}.dims",
                    f"byte size for tensor '{name}' exceeds maximum size of {MAX_SIZE}",
                )
            if tensor.WhichOneof("input_data_type") is None:
                yield ConfigProblem(
                    path, f"warmup setting expects input '{name}' to have input_data_type set"
                )


def metrics_problems(config: ModelConfig) -> Iterator[ConfigProblem]:
    """Yield the missing fields of each `metric_control`."""
    for index, control in enumerate(config.model_metrics.metric_control):
        path = f"model_metrics.metric_control[{index}]"
        if not control.HasField("metric_identifier"):
            yield ConfigProblem(path, "metric control must specify 'metric_identifier'")
        elif not control.metric_identifier.family:
            yield ConfigProblem(
                f"{path}.metric_identifier", "metric identifier must specify non-empty 'family'"
            )
        if not control.HasField("histogram_options"):
            yield ConfigProblem(path, "metric control must specify 'histogram_options'")
        elif not control.histogram_options.buckets:
            yield ConfigProblem(
                f"{path}.histogram_options", "histogram options must specify non-empty 'buckets'"
            )


def group_problems(
    config: ModelConfig, gpus: Sequence[int], min_compute_capability: float
) -> Iterator[ConfigProblem]:
    """Yield the problems of instance groups on this machine with the GPUs `gpus`."""
    if config.HasField("ensemble_scheduling"):
        return
    if not config.instance_group:
        yield ConfigProblem(
            "instance_group", f"must specify one or more 'instance group's for {config.name}"
        )
    for index, group in enumerate(config.instance_group):
        path = f"instance_group[{index}]"
        subject = f"instance group {group.name} of model {config.name}"
        yield from _device_problems(group, path, subject, gpus, min_compute_capability)
        yield from _profile_problems(group, path, subject, config.platform)


def _device_problems(
    group: ModelInstanceGroup,
    path: str,
    subject: str,
    gpus: Sequence[int],
    min_compute_capability: float,
) -> Iterator[ConfigProblem]:
    kind = ModelInstanceGroup.Kind.Name(group.kind)
    if group.kind == ModelInstanceGroup.KIND_AUTO:
        yield ConfigProblem(f"{path}.kind", f"{subject} has unexpected kind KIND_AUTO")
    elif group.kind != ModelInstanceGroup.KIND_GPU:
        if group.gpus:
            yield ConfigProblem(
                f"{path}.gpus", f"{subject} has kind {kind} but specifies one or more GPUs"
            )
    elif not group.gpus:
        lack = "specifies no GPUs" if gpus else "no GPUs are available"
        yield ConfigProblem(f"{path}.kind", f"{subject} has kind KIND_GPU but {lack}")
    for index, gpu in enumerate(group.gpus if group.kind == ModelInstanceGroup.KIND_GPU else ()):
        if gpu not in gpus:
            yield ConfigProblem(
                f"{path}.gpus[{index}]",
                f"{subject} specifies invalid or unsupported gpu id {gpu}. "
                "GPUs with at least the minimum required CUDA "
                f"compute compatibility of {min_compute_capability:.6f} are: "
                f"{', '.join(map(str, gpus))}",
            )


def _profile_problems(
    group: ModelInstanceGroup, path: str, subject: str, platform: str
) -> Iterator[ConfigProblem]:
    if group.profile and platform != TENSORRT_PLATFORM:
        yield ConfigProblem(
            f"{path}.profile",
            (
                f"{subject} and platform {platform}specifies profile field which is only "
                "supported for TensorRT models"
            ),
        )
        return
    for index, profile in enumerate(group.profile):
        if not profile.isdecimal():
            yield ConfigProblem(
                f"{path}.profile[{index}]",
                f"{subject} and platform {platform} specifies invalid profile {profile}. "
                "The field should contain the "
                "string representation of a non-negative integer.",
            )


def cache_problems(config: ModelConfig) -> Iterator[ConfigProblem]:
    """Yield the settings that are not allowed with an enabled response cache."""
    if not config.response_cache.enable:
        return
    refused = f"Response Cache does not currently support model {config.name} with"
    advice = "Please disable the response cache."
    if config.HasField("sequence_batching"):
        yield ConfigProblem(
            "response_cache.enable", f"{refused} sequence batching scheduler. {advice}"
        )
    if config.model_transaction_policy.decoupled:
        yield ConfigProblem(
            "response_cache.enable", f"{refused} 'decoupled' transaction policy. {advice}"
        )


def batch_tensor_problems(config: ModelConfig) -> Iterator[ConfigProblem]:
    """Yield the problems of `batch_input`, then of `batch_output`."""
    for index, batch_input in enumerate(config.batch_input):
        path = f"batch_input[{index}]"
        yield from _source_problems(
            config, batch_input, path, BatchInput.Kind.Name(batch_input.kind), "input"
        )
        if batch_input.data_type not in (DataType.TYPE_INT32, DataType.TYPE_FP32):
            yield ConfigProblem(
                f"{path}.data_type",
                f"batch input data type must be TYPE_INT32 or TYPE_FP32 for {config.name}",
            )
    for index, batch_output in enumerate(config.batch_output):
        path = f"batch_output[{index}]"
        yield from _source_problems(
            config, batch_output, path, BatchOutput.Kind.Name(batch_output.kind), "output"
        )
        yield from _target_problems(config, batch_output, path)


def _source_problems(
    config: ModelConfig, tensor: BatchInput | BatchOutput, path: str, kind: str, label: str
) -> Iterator[ConfigProblem]:
    count = len(tensor.source_input)
    if count != 1:
        yield ConfigProblem(
            f"{path}.source_input",
            f"batch {label} kind '{kind}' expects 1 source input, got {count} for {config.name}",
        )
    known = {tensor.name for tensor in config.input}
    for index, name in enumerate(tensor.source_input):
        if name not in known:
            yield ConfigProblem(
                f"{path}.source_input[{index}]",
                f"unknown source input name '{name}' for {config.name}",
            )


def _target_problems(
    config: ModelConfig, tensor: BatchOutput, path: str
) -> Iterator[ConfigProblem]:
    known = {output.name for output in config.output}
    seen: set[str] = set()
    for index, name in enumerate(tensor.target_name):
        key = f"{path}.target_name[{index}]"
        if name not in known:
            yield ConfigProblem(key, f"unknown target output name '{name}' for {config.name}")
        elif name in seen:
            yield ConfigProblem(
                key, f"target output name '{name}' can only be specified once for {config.name}"
            )
        seen.add(name)


def validate(
    config: ModelConfig,
    model_name: str,
    gpus: Sequence[int] = (),
    *,
    tensors: bool = True,
    min_compute_capability: float = MIN_COMPUTE_CAPABILITY,
) -> list[ConfigProblem]:
    """Return all problems of a normalized configuration; Triton reports the first one.

    `model_name` is the model's name in the repository. `gpus` are the ids of the server's GPUs,
    which have at least the compute capability `min_compute_capability`. `tensors` False skips the
    inputs and outputs, for a configuration that its backend has not completed yet. Rules that need
    other models' configurations (an ensemble's steps) are not checked here.
    """
    return list(_problems(config, model_name, gpus, tensors, min_compute_capability))


def _problems(
    config: ModelConfig,
    model_name: str,
    gpus: Sequence[int],
    tensors: bool,
    min_compute_capability: float,
) -> Iterator[ConfigProblem]:
    yield from identity_problems(config, model_name)
    yield from dynamic_batching_problems(config)
    yield from sequence_problems(config)
    yield from ensemble_problems(config)
    yield from cache_problems(config)
    yield from metrics_problems(config)
    yield from group_problems(config, gpus, min_compute_capability)
    if tensors:
        yield from tensor_problems(config)
        yield from batch_tensor_problems(config)
    yield from state_problems(config)
    yield from warmup_problems(config)
    yield from batch_strategy_problems(config)
    yield from file_name_problems(config)
