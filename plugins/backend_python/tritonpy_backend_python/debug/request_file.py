"""Inference requests in files, in the format of HTTP requests."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from math import prod
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from tritonpy import (
    DTYPES,
    OutputSpec,
    ParameterValue,
    SequenceInfo,
    StartupError,
    Tensor,
    encode_strings,
)

_Parameters = dict[str, ParameterValue]


class _Input(msgspec.Struct):
    """An input.

    `data` is nested or flat. Without it, the parameter `binary_data_size` is the number of bytes of
    the input after the JSON text.
    """

    name: str
    shape: list[int]
    datatype: str
    data: list[Any] | None = None
    parameters: _Parameters = {}


class _Output(msgspec.Struct):
    name: str
    parameters: _Parameters = {}


class _Body(msgspec.Struct):
    inputs: list[_Input]
    id: str = ""
    parameters: _Parameters = {}
    outputs: list[_Output] = []


class FileRequest(msgspec.Struct):
    """A parsed request file, as fields of an `InferRequest`."""

    inputs: dict[str, Tensor]
    id: str
    outputs: dict[str, OutputSpec] | None
    parameters: _Parameters
    priority: int
    timeout_us: int
    sequence: SequenceInfo | None


def read_request(file: Path, header_length: int | None) -> FileRequest:
    """Read a request file.

    The first `header_length` bytes are JSON text; binary tensors follow. With None, the whole file
    is JSON text. Raises `StartupError` if the file is not a valid request.
    """
    try:
        content = file.read_bytes()
    except OSError as error:
        raise StartupError(f"the request '{file}' cannot be read: {error.strerror}") from error
    end = len(content) if header_length is None else header_length
    try:
        body = msgspec.json.decode(content[:end], type=_Body)
        return _request(body, _tensors(body.inputs, content[end:]))
    except (msgspec.DecodeError, ValueError) as error:
        hint = (
            ""
            if header_length is not None
            else "; a request with binary tensors needs --header-length"
        )
        raise StartupError(f"'{file}' is not an inference request: {error}{hint}") from error


def _request(body: _Body, inputs: dict[str, Tensor]) -> FileRequest:
    parameters = dict(body.parameters)
    sequence = parameters.pop("sequence_id", 0)
    start, end = (bool(parameters.pop(f"sequence_{edge}", False)) for edge in ("start", "end"))
    parameters.pop("binary_data_output", None)
    return FileRequest(
        inputs,
        body.id,
        {output.name: _output_spec(output) for output in body.outputs} or None,
        parameters,
        int(parameters.pop("priority", 0)),
        int(parameters.pop("timeout", 0)),
        SequenceInfo(sequence if isinstance(sequence, str) else int(sequence), start, end)
        if sequence
        else None,
    )


def _output_spec(output: _Output) -> OutputSpec:
    return OutputSpec(output.name, classification=int(output.parameters.get("classification", 0)))


def _tensors(inputs: Sequence[_Input], binary: bytes) -> dict[str, Tensor]:
    tensors, at = {}, 0
    for each in inputs:
        if each.datatype not in DTYPES:
            raise ValueError(f"input '{each.name}' has the unknown datatype '{each.datatype}'")
        if each.data is not None:
            tensors[each.name] = _from_json(each, each.data)
            continue
        if "binary_data_size" not in each.parameters:
            raise ValueError(f"input '{each.name}' has neither 'data' nor a 'binary_data_size'")
        size = int(each.parameters["binary_data_size"])
        if at + size > len(binary):
            raise ValueError(
                f"input '{each.name}' needs {size} bytes after the JSON text, "
                f"{len(binary) - at} are left"
            )
        tensors[each.name] = Tensor.from_buffer(
            each.name, each.datatype, tuple(each.shape), binary[at : at + size]
        )
        at += size
    if at < len(binary):
        raise ValueError(f"{len(binary) - at} bytes after the JSON text belong to no input")
    return tensors


def _from_json(given: _Input, data: list[Any]) -> Tensor:
    while data and all(isinstance(each, list) for each in data):
        data = list(chain.from_iterable(data))
    if len(data) != prod(given.shape):
        raise ValueError(
            f"input '{given.name}' has {len(data)} elements, but its shape {given.shape} needs "
            f"{prod(given.shape)}"
        )
    shape = tuple(given.shape)
    if given.datatype == "BYTES":
        if not all(isinstance(each, str) for each in data):
            raise ValueError(f"input '{given.name}' is BYTES, so its elements must be strings")
        return Tensor(given.name, "BYTES", shape, encode_strings([each.encode() for each in data]))
    try:
        array = np.array(data, DTYPES[given.datatype])
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(
            f"input '{given.name}' cannot be converted to {given.datatype}: {error}"
        ) from error
    return Tensor(given.name, given.datatype, shape, array.reshape(shape))
