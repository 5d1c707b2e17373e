"""Tensors as they can travel."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tritonpy.ipc.blocks import Placed
from tritonpy.types import CPU, InferRequest, Tensor


def on_host(tensors: Iterable[Tensor]) -> list[Tensor]:
    """Return the tensors with their data in host memory; those that lie on another device are copied."""
    return [
        tensor
        if type(tensor.data) is np.ndarray or tensor.device[0] == CPU[0]
        else Tensor.from_numpy(tensor.name, tensor.numpy())
        for tensor in tensors
    ]


def input_rows(requests: Sequence[InferRequest]) -> list[Any]:
    """Return the inputs of each request as a row of a frame; those that are placed in the block that they came in stay there."""
    if requests and _is_placed(requests[0].inputs):
        return [
            request.inputs if _is_placed(request.inputs) else on_host(request.inputs.values()) for request in requests
        ]
    return [on_host(request.inputs.values()) for request in requests]


def _is_placed(inputs: Any) -> bool:
    return isinstance(inputs, Placed)
