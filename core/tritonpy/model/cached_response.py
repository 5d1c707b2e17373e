"""An answer as the tensors that a cache keeps."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from tritonpy.types import InferResponse, Tensor

_PARAMETERS = ""  # the name of the tensor that carries an answer's parameters: no output has it


def to_tensors(response: InferResponse) -> Sequence[Tensor] | None:
    """Return what to keep of an answer; None where some output is not in host memory."""
    outputs = response.outputs
    if not all([type(tensor.data) is np.ndarray for tensor in outputs]):
        return None
    if not response.parameters:
        return outputs
    data = np.frombuffer(msgspec.json.encode(response.parameters), np.uint8)
    return [*outputs, Tensor(_PARAMETERS, "UINT8", data.shape, data)]


def from_tensors(kept: Sequence[Tensor]) -> InferResponse:
    """Return the answer that was kept. Raises msgspec.DecodeError for parameters that are broken."""
    if not kept or kept[-1].name != _PARAMETERS:
        return InferResponse(kept)
    parameters = msgspec.json.decode(kept[-1].data.tobytes(), type=dict[str, str | int | bool | float])
    return InferResponse(kept[:-1], parameters=parameters)
