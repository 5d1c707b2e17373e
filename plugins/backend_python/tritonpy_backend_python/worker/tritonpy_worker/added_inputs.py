"""Inputs that a scheduler adds to an execution: each request gets one row of each tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .api.tensor import Tensor


def added_inputs(tensors: Sequence[Tensor], count: int) -> list[list[Tensor]]:
    """Return the added inputs of each of `count` requests or slots.

    Each of the `tensors` has one row per request or slot.
    """
    columns = [_rows(tensor, count) for tensor in tensors]
    return [[rows[row] for rows in columns] for row in range(count)]


def _rows(tensor: Tensor, count: int) -> list[Tensor]:
    name, datatype = tensor._name, tensor._datatype
    if datatype == "BYTES":
        strings = tensor.as_numpy()
        return [Tensor(name, strings[row : row + 1]) for row in range(count)]
    shape, data = (1, *tensor._shape[1:]), tensor._data
    rows: Any = data.reshape((len(data), *shape))[:count]  # one call instead of one per row
    return [Tensor.received(name, datatype, shape, row) for row in rows]
