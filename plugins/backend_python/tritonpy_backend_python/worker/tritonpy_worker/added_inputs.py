"""What a scheduler adds to an execution: one row of each of its tensors is a further input of each request."""

from __future__ import annotations

from collections.abc import Sequence

from .api.tensor import Tensor


def added_inputs(tensors: Sequence[Tensor], count: int) -> list[list[Tensor]]:
    """Return the inputs that each of `count` requests, or slots, gets of `tensors`, which have a row for each."""
    return [[_row(tensor, row) for tensor in tensors] for row in range(count)]


def _row(tensor: Tensor, row: int) -> Tensor:
    shape = (1, *tensor._shape[1:])
    if tensor._datatype == "BYTES":
        return Tensor(tensor._name, tensor.as_numpy()[row : row + 1])
    return Tensor.received(tensor._name, tensor._datatype, shape, tensor._data[row : row + 1])
