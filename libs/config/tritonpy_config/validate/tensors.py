"""Rules for the inputs and outputs of a model."""

from __future__ import annotations

from collections.abc import Iterator

from tritonpy_config.known_backends import TENSORRT_PLATFORM
from tritonpy_config.model_fit import MAX_SIZE, WILDCARD, element_count, trunk_counts
from tritonpy_config.problem import ConfigProblem
from tritonpy_protos.model_config_pb2 import DataType, ModelConfig, ModelInput, ModelOutput

_FORMATS_OF_IMAGES = (ModelInput.FORMAT_NHWC, ModelInput.FORMAT_NCHW)


def tensor_problems(config: ModelConfig) -> Iterator[ConfigProblem]:
    """Yield the problems of each input, then of each output."""
    seen: set[str] = set()
    for index, tensor in enumerate(config.input):
        path = f"input[{index}]"
        yield from _described(config, _io_problems(config, tensor, path, "input"))
        yield from _described(config, _format_problems(tensor, path))
        yield from _described(config, _platform_problems(config, tensor, path, "input"))
        if tensor.name in seen:
            yield ConfigProblem(
                f"{path}.name",
                f"model input '{tensor.name}' is specified more than once for {config.name}",
            )
        seen.add(tensor.name)
    for index, output in enumerate(config.output):
        path = f"output[{index}]"
        yield from _described(config, _io_problems(config, output, path, "output"))
        yield from _described(config, _platform_problems(config, output, path, "output"))


def _described(config: ModelConfig, problems: Iterator[tuple[str, str]]) -> Iterator[ConfigProblem]:
    for path, text in problems:
        yield ConfigProblem(path, f"{text} for {config.name}")


def _io_problems(
    config: ModelConfig, tensor: ModelInput | ModelOutput, path: str, label: str
) -> Iterator[tuple[str, str]]:
    if not tensor.name:
        yield path, f"model {label} must specify 'name'"
        return
    subject = f"model {label} '{tensor.name}'"
    if tensor.data_type == DataType.TYPE_INVALID:
        yield path, f"{subject} must specify 'data_type'"
    if not tensor.dims:
        yield path, f"{subject} must specify 'dims'"
    if tensor.HasField("reshape") and not tensor.reshape.shape and config.max_batch_size == 0:
        yield (
            f"{path}.reshape",
            (
                f"{subject} cannot have empty reshape for non-batching model as scalar tensors "
                "are not supported"
            ),
        )
    broken = list(_dim_problems(tensor, path, subject))
    yield from broken
    if tensor.dims and tensor.HasField("reshape") and not broken:
        yield from _reshape_problems(tensor, path, subject)


def _dim_problems(
    tensor: ModelInput | ModelOutput, path: str, subject: str
) -> Iterator[tuple[str, str]]:
    rule = "must be integer >= 1, or -1 to indicate a variable-size dimension"
    for index, size in enumerate(tensor.dims):
        if size < 1 and size != WILDCARD:
            yield f"{path}.dims[{index}]", f"{subject} dimension {rule}"
    for index, size in enumerate(tensor.reshape.shape):
        if size < 1 and size != WILDCARD:
            yield f"{path}.reshape.shape[{index}]", f"{subject} reshape dimensions {rule}"


def _reshape_problems(
    tensor: ModelInput | ModelOutput, path: str, subject: str
) -> Iterator[tuple[str, str]]:
    dims, shape = tensor.dims, tensor.reshape.shape
    before, after = element_count(dims), element_count(shape)
    for count, label in ((before, "dims"), (after, "reshape")):
        if count > MAX_SIZE:
            yield (
                path,
                (
                    f"element count for tensor '{tensor.name} {label}' exceeds maximum size of "
                    f"{MAX_SIZE}"
                ),
            )
            return
    if before != after and (after != 0 or before != 1):
        yield f"{path}.reshape", f"{subject} has different size for dims and reshape"
    elif before == WILDCARD:
        # the runs between the variable dimensions must match one by one
        runs, reshaped = trunk_counts(dims), trunk_counts(shape)
        if len(runs) != len(reshaped):
            yield (
                f"{path}.reshape",
                f"{subject} has different number of variable-size dimensions for dims and reshape",
            )
        elif runs != reshaped:
            yield f"{path}.reshape", f"{subject} has different size for dims and reshape"


def _format_problems(tensor: ModelInput, path: str) -> Iterator[tuple[str, str]]:
    if tensor.format in _FORMATS_OF_IMAGES and len(tensor.dims) != 3:
        yield f"{path}.format", "model input NHWC/NCHW require 3 dims"


def _platform_problems(
    config: ModelConfig, tensor: ModelInput | ModelOutput, path: str, label: str
) -> Iterator[tuple[str, str]]:
    on_tensorrt = config.platform == TENSORRT_PLATFORM
    if tensor.is_shape_tensor and not on_tensorrt:
        yield f"{path}.is_shape_tensor", "shape tensors are only supported for TensorRT platform"
    if tensor.is_non_linear_format_io:
        key = f"{path}.is_non_linear_format_io"
        if not on_tensorrt:
            yield key, "Non-linear IO format is only supported for the TensorRT platform"
        elif len(tensor.dims) != 3:
            yield key, f"Non-linear IO format {label} requires 3 dims"
