"""Conversion between responses and the tensors that a cache stores."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from tritonpy_types import InferResponse, Tensor

_PARAMETERS = ""  # name of the tensor that carries the parameters; no output has an empty name


def to_tensors(response: InferResponse) -> Sequence[Tensor] | None:
    """Return the tensors to store for a response, or None if an output is not in host memory."""
    outputs = response.outputs
    if not all([type(tensor.data) is np.ndarray for tensor in outputs]):
        return None
    if not response.parameters:
        return outputs
    data = np.frombuffer(msgspec.json.encode(response.parameters), np.uint8)
    return [*outputs, Tensor(_PARAMETERS, "UINT8", data.shape, data)]


def from_tensors(stored: Sequence[Tensor]) -> InferResponse:
    """Return the response stored as `stored`.

    Raises `msgspec.DecodeError` for invalid parameters.
    """
    if not stored or stored[-1].name != _PARAMETERS:
        return InferResponse(stored)
    parameters = msgspec.json.decode(
        stored[-1].data.tobytes(), type=dict[str, str | int | bool | float]
    )
    return InferResponse(stored[:-1], parameters=parameters)
