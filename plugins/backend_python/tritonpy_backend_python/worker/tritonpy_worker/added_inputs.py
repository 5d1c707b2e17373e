"""What a scheduler adds to an execution: one row of each of its tensors is a further input of each request."""

from __future__ import annotations

from collections.abc import Sequence

from .api.tensor import Tensor


def added_inputs(tensors: Sequence[Tensor], slots: Sequence[bool] | None, count: int) -> list[list[Tensor]]:
    """Return the inputs that each of `count` requests gets of `tensors`.

    Without `slots` the rows are those of the requests; otherwise a slot that is taken is the next request's row.
    """
    rows = range(count) if slots is None else [row for row, taken in enumerate(slots) if taken]
    return [[_row(tensor, row) for tensor in tensors] for row in rows]


def _row(tensor: Tensor, row: int) -> Tensor:
    shape = (1, *tensor._shape[1:])
    if tensor._datatype == "BYTES":
        return Tensor(tensor._name, tensor.as_numpy()[row : row + 1])
    return Tensor.received(tensor._name, tensor._datatype, shape, tensor._data[row : row + 1])
