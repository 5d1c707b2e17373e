"""Tensors whose data cannot travel in the block of their row.

Their data lies in a region of shared memory, or does not fit their type and shape.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tritonpy import DTYPES, Tensor
from tritonpy.frontend import RegionSlice
from tritonpy_ipc import ProtocolError

# position in the row, name, datatype, shape; then region, offset and size if the data is in a
# region
TensorDescription = list[Any]


def is_irregular(tensor: Tensor) -> bool:
    """Return whether `tensor` needs a description."""
    data = tensor.data
    if type(data) is not np.ndarray:
        return True
    if tensor.datatype == "BYTES":
        return data.ndim != 1 or any([size < 0 for size in tensor.shape])
    return data.shape != tensor.shape or tensor.datatype not in DTYPES


def split_irregular(row: Iterable[Tensor]) -> tuple[list[Tensor], list[TensorDescription]]:
    """Return the tensors that travel in the row, and the descriptions of irregular tensors."""
    sendable: list[Tensor] = []
    descriptions: list[TensorDescription] = []
    for position, tensor in enumerate(row):
        if not is_irregular(tensor):
            sendable.append(tensor)
        elif isinstance(tensor.data, RegionSlice):
            part = tensor.data
            descriptions.append(
                [position, tensor.name, tensor.datatype, tensor.shape,
                [part.name, part.offset, part.byte_size]]
            )  # fmt: skip
        else:
            flat = np.ascontiguousarray(tensor.data).reshape(-1).view(np.uint8)
            sendable.append(Tensor(tensor.name, "BYTES", (len(flat),), flat))
            descriptions.append([position, tensor.name, tensor.datatype, tensor.shape])
    return sendable, descriptions


def restore(row: Sequence[Tensor], descriptions: Sequence[TensorDescription]) -> list[Tensor]:
    """Return the row as it was before `split_irregular`. Raises ProtocolError."""
    tensors = list(row)
    try:
        for position, name, datatype, shape, *region in descriptions:
            if region:
                tensors.insert(
                    position, Tensor(name, datatype, tuple(shape), RegionSlice(*region[0]))
                )
            else:
                tensors[position] = Tensor(name, datatype, tuple(shape), tensors[position].data)
    except (IndexError, TypeError, ValueError) as error:
        raise ProtocolError(f"the descriptions of tensors do not fit them: {error!r}") from error
    return tensors
