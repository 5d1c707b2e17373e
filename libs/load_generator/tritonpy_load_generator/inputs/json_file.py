"""Inputs from JSON files in perf_analyzer's format."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from tritonpy_load_generator.inputs.shapes import Shapes, fits, shape_of
from tritonpy_load_generator.inputs.tensor import InputTensor, from_bytes, from_values
from tritonpy_load_generator.options import BadUsage
from tritonpy_load_generator.target.metadata import ModelDescription, TensorDescription

Step = tuple[InputTensor, ...]


def read_streams(path: Path, model: ModelDescription, given: Shapes) -> list[list[Step]]:
    """Return the data streams of a file: lists of steps, each with one unbatched tensor per input.

    `{"data": [STEP, …]}` is one stream, `{"data": [[STEP, …], …]}` several. A step has each input
    as flat or nested values, as `{"content": VALUES, "shape": [...]}`, or as `{"b64": TEXT}`.
    Raises BadUsage with the file and the step.
    """
    data = _data(path)
    if not any(isinstance(each, list) for each in data):
        data = [data]
    streams = []
    for number, stream in enumerate(data):
        if not isinstance(stream, list) or not stream:
            raise BadUsage(f"{path}: stream {number} of 'data' is not a list of steps")
        steps = []
        for index, step in enumerate(stream):
            try:
                steps.append(_step(step, model, given))
            except BadUsage as error:
                raise BadUsage(f"{path}: stream {number}, step {index}: {error}") from error
        streams.append(steps)
    return streams


def _data(path: Path) -> list[Any]:
    try:
        plain = msgspec.json.decode(path.read_bytes())
    except (OSError, msgspec.DecodeError) as error:
        raise BadUsage(f"{path} cannot be read as JSON: {error}") from error
    data = plain.get("data") if isinstance(plain, dict) else None
    if not isinstance(data, list) or not data:
        raise BadUsage(f"{path} has no list 'data' with at least one step")
    return data


def _step(step: Any, model: ModelDescription, given: Shapes) -> Step:
    if not isinstance(step, Mapping):
        raise BadUsage("it is not an object with inputs by name")
    tensors = []
    for tensor in model.inputs:
        if tensor.name in step:
            tensors.append(_tensor(tensor, step[tensor.name], model, given))
        elif not tensor.optional:
            raise BadUsage(f"input '{tensor.name}' is missing")
    return tuple(tensors)


def _tensor(
    tensor: TensorDescription, value: Any, model: ModelDescription, given: Shapes
) -> InputTensor:
    content, shape = value, None
    if isinstance(value, Mapping):
        content = value.get("content", value if "b64" in value else None)
        shape = value.get("shape")
    if content is None:
        raise BadUsage(f"input '{tensor.name}' has neither 'content' nor 'b64'")
    dims = _shape(tensor, shape, model, given)
    if not isinstance(content, Mapping):
        return from_values(tensor.name, tensor.datatype, dims, content)
    try:
        return from_bytes(
            tensor.name,
            tensor.datatype,
            dims,
            base64.b64decode(str(content.get("b64", "")), validate=True),
        )
    except binascii.Error as error:
        raise BadUsage(f"input '{tensor.name}' is not base64: {error}") from error


def _shape(
    tensor: TensorDescription, shape: Any, model: ModelDescription, given: Shapes
) -> tuple[int, ...]:
    if shape is None:
        return shape_of(tensor, given, model.name)
    if (
        not isinstance(shape, list)
        or not all(isinstance(dim, int) for dim in shape)
        or not fits(shape, tensor.dims)
    ):
        raise BadUsage(
            f"the shape {shape} of input '{tensor.name}' does not fit the model's "
            f"{list(tensor.dims)}"
        )
    return tuple(shape)
