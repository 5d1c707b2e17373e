"""Rules for warm-up samples that do not need their files."""

from __future__ import annotations

from collections.abc import Iterator

from tritonpy.config.dims import MAX_SIZE, WILDCARD, dims_text, element_count
from tritonpy.config.positions import entry
from tritonpy.config.problem import ConfigProblem
from tritonpy_protos.model_config_pb2 import ModelConfig


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
                    f"warmup setting expects all variable-size dimensions are specified for input '{name}'",
                )
            elif element_count(tensor.dims) > MAX_SIZE:
                yield ConfigProblem(f"{path}.dims", f"byte size for tensor '{name}' exceeds maximum size of {MAX_SIZE}")
            if tensor.WhichOneof("input_data_type") is None:
                yield ConfigProblem(path, f"warmup setting expects input '{name}' to have input_data_type set")
