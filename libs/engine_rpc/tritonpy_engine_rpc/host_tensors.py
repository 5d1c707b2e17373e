"""Tensors in host memory, as frames can carry them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tritonpy import InferRequest, Tensor
from tritonpy.execution import CPU
from tritonpy_ipc.blocks import BlockView


def to_host(tensors: Iterable[Tensor]) -> list[Tensor]:
    """Return the tensors in host memory; those on other devices are copied."""
    return [
        tensor
        if type(tensor.data) is np.ndarray or tensor.device[0] == CPU[0]
        else Tensor.from_numpy(tensor.name, tensor.numpy())
        for tensor in tensors
    ]


def input_rows(requests: Sequence[InferRequest]) -> list[Any]:
    """Return the inputs of each request as a row of a frame; rows in a block stay in it."""
    if requests and _is_block_view(requests[0].inputs):
        return [
            request.inputs if _is_block_view(request.inputs) else to_host(request.inputs.values())
            for request in requests
        ]
    return [to_host(request.inputs.values()) for request in requests]


def _is_block_view(inputs: Any) -> bool:
    return isinstance(inputs, BlockView)
