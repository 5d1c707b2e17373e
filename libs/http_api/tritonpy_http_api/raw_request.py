"""Decoding of raw binary requests: the body is the data of the model's only input."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tritonpy import InferRequest, InvalidArgument, Tensor, encode_strings
from tritonpy.config import DATATYPE_OF_NUMBER
from tritonpy.frontend import Sink

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig, ModelInput

_PREFIX = "[request id: <id_unknown>] "


def check_raw_size(size: int, limit: int) -> None:
    """Raise InvalidArgument if a raw body exceeds `limit` bytes."""
    if size > limit:
        raise InvalidArgument(
            f"Raw input has a byte_size ({size} bytes) that exceeds the maximum allowed value of "
            f"{limit} bytes. "
            "Use --http-max-input-size to increase the limit."
        )


def decode_raw(
    body: bytes, config: ModelConfig, model: str, version: int, sink: Sink, limit: int
) -> InferRequest:
    """Return the request, with the shape from the model configuration.

    The batch dimension is 1; the size of the data determines the variable dimension. Raises
    InvalidArgument for more than `limit` bytes, and if the input or its shape cannot be deduced.
    """
    check_raw_size(len(body), limit)
    if len(config.input) != 1:
        raise InvalidArgument(
            f"{_PREFIX}Raw request must only have 1 input (found 1) to be deduced but got "
            f"{len(config.input)} inputs "
            f"in '{model}' model configuration"
        )
    tensor = _tensor(body, config.input[0], [1] if config.max_batch_size else [])
    return InferRequest(model, {tensor.name: tensor}, sink, version)


def _tensor(body: bytes, given: ModelInput, batch: list[int]) -> Tensor:
    kind = DATATYPE_OF_NUMBER[given.data_type]
    dims = list(given.dims)
    if dims.count(-1) > 1:
        raise InvalidArgument(
            f"{_PREFIX}The shape of the raw input '{given.name}' can not be deduced because "
            "there are more than one "
            "variable-sized dimension"
        )
    if kind.name == "BYTES":
        if any(dim != 1 for dim in dims):
            raise InvalidArgument(
                f"{_PREFIX}For BYTE datatype raw input '{given.name}', the model must have input "
                "shape [1]"
            )
        return Tensor(given.name, kind.name, (*batch, *dims), encode_strings([body]))
    if -1 in dims:
        fixed = int(np.prod([dim for dim in dims if dim != -1], dtype=np.int64)) * kind.itemsize
        dims[dims.index(-1)] = len(body) // fixed if fixed else 0
    return Tensor.from_buffer(given.name, kind.name, (*batch, *dims), body)
