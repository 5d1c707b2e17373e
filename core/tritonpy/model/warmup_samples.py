"""Warmup samples and their data, from `model_warmup` in the configuration."""

from __future__ import annotations

import logging
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tritonpy.model.request_check import RequestCheck
from tritonpy.runners.warmup import WarmupSample
from tritonpy_config.model_files import resolve_model_file
from tritonpy_types import DATATYPE_OF_NUMBER, CallbackSink, InferRequest, Tensor
from tritonpy_types.datatypes import DataType
from tritonpy_types.errors import Internal, InvalidArgument

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig, ModelWarmup

log = logging.getLogger("tritonpy.model")

WARMUP_FOLDER = "warmup"
_NO_TYPE = "<invalid>"  # Triton's name for a missing datatype
_FLOATS = {"FP16", "FP32", "FP64", "BF16"}


def warmup_samples(config: ModelConfig, directory: Path) -> list[WarmupSample]:
    """Return the samples of a complete configuration.

    Their files are in the folder `warmup` of the model's `directory`. Each request of a sample has
    one row, and is checked and reshaped like a client's request. Inputs that are not in the
    configuration, such as sequence controls, are passed unchanged. All requests of a sample share
    their data. Raises `InvalidArgument` or `Internal` with Triton's text.
    """
    plain = type(config)()
    plain.CopyFrom(config)
    plain.ClearField("sequence_batching")  # warmup requests belong to no sequence
    check = RequestCheck(plain, config.name)
    return [
        _sample(config, sample, check, directory / WARMUP_FOLDER)
        for sample in config.model_warmup
        if sample.batch_size > 0
    ]


def _sample(
    config: ModelConfig, sample: ModelWarmup, check: RequestCheck, folder: Path
) -> WarmupSample:
    configured = {field.name: field for field in config.input}
    inputs: dict[str, Tensor] = {}
    added: dict[str, Tensor] = {}
    for name in sorted(sample.inputs):
        field = configured.get(name)
        batched = config.max_batch_size > 0 and not (field is not None and field.is_shape_tensor)
        tensor = _tensor(name, sample.inputs[name], batched, folder)
        (added if field is None else inputs)[name] = tensor
    request = InferRequest(config.name, inputs, _NULL_SINK)
    check.check(request)
    if request.unchecked_strings:
        check.check_strings(request)
    return WarmupSample(
        sample.name, max(1, sample.count), [{**request.inputs, **added}] * sample.batch_size
    )


def _tensor(name: str, given: ModelWarmup.Input, batched: bool, folder: Path) -> Tensor:
    shape = (1, *given.dims) if batched else tuple(given.dims)
    kind = DATATYPE_OF_NUMBER.get(given.data_type)
    if kind is None:
        return Tensor(name, _NO_TYPE, shape, np.zeros(0, np.uint8))
    choice = given.WhichOneof("input_data_type")
    if choice == "input_data_file":
        return Tensor.from_buffer(
            name, kind.name, shape, _content(folder, given.input_data_file, kind, shape)
        )
    if not kind.itemsize:  # random strings are empty strings
        return Tensor(name, kind.name, shape, np.zeros(4 * prod(shape), np.uint8))
    return Tensor(
        name,
        kind.name,
        shape,
        _random(kind, shape) if choice == "random_data" else np.zeros(shape, kind.dtype),
    )


def _content(folder: Path, file: str, kind: DataType, shape: tuple[int, ...]) -> bytes:
    path = resolve_model_file(file, folder, folder.parent)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise Internal(f"failed to open text file for read {path}: {error.strerror}") from error
    expected = prod(shape) * kind.itemsize
    if not kind.itemsize or len(content) == expected:
        return content
    if len(content) < expected:
        raise InvalidArgument(
            f"[request id: <id_unknown>] warmup setting expects {expected} bytes, "
            f"but the data provided from {file}only has "
            f"{len(content)} bytes"
        )
    log.warning(
        "warmup setting expects %d bytes, %s has %d: the rest is ignored",
        expected,
        path,
        len(content),
    )
    return content[:expected]


def _random(kind: DataType, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """Return the same numbers every time: floats from 0 to 1, any value for other types."""
    random = np.random.default_rng(0)
    if kind.name in _FLOATS:
        return random.random(shape).astype(kind.dtype)
    if kind.name == "BOOL":
        return random.integers(0, 2, shape).astype(kind.dtype)
    return np.frombuffer(random.bytes(prod(shape) * kind.itemsize), kind.dtype).reshape(shape)


_NULL_SINK = CallbackSink(lambda _request, _response: None)
