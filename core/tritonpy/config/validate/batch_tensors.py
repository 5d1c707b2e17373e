"""Rules for `batch_input` and `batch_output`, which describe tensors of a whole batch."""

from __future__ import annotations

from collections.abc import Iterator

from tritonpy.config.problem import ConfigProblem
from tritonpy_protos.model_config_pb2 import BatchInput, BatchOutput, DataType, ModelConfig


def batch_tensor_problems(config: ModelConfig) -> Iterator[ConfigProblem]:
    """Yield the problems of `batch_input`, then of `batch_output`."""
    for index, batch_input in enumerate(config.batch_input):
        path = f"batch_input[{index}]"
        yield from _source_problems(config, batch_input, path, BatchInput.Kind.Name(batch_input.kind), "input")
        if batch_input.data_type not in (DataType.TYPE_INT32, DataType.TYPE_FP32):
            yield ConfigProblem(
                f"{path}.data_type", f"batch input data type must be TYPE_INT32 or TYPE_FP32 for {config.name}"
            )
    for index, batch_output in enumerate(config.batch_output):
        path = f"batch_output[{index}]"
        yield from _source_problems(config, batch_output, path, BatchOutput.Kind.Name(batch_output.kind), "output")
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
                f"{path}.source_input[{index}]", f"unknown source input name '{name}' for {config.name}"
            )


def _target_problems(config: ModelConfig, tensor: BatchOutput, path: str) -> Iterator[ConfigProblem]:
    known = {output.name for output in config.output}
    seen: set[str] = set()
    for index, name in enumerate(tensor.target_name):
        key = f"{path}.target_name[{index}]"
        if name not in known:
            yield ConfigProblem(key, f"unknown target output name '{name}' for {config.name}")
        elif name in seen:
            yield ConfigProblem(key, f"target output name '{name}' can only be specified once for {config.name}")
        seen.add(name)
