"""Tensors whose data cannot travel in the block of their row: it lies in a region, or does not fit what is said of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tritonpy.ipc import ProtocolError
from tritonpy.types import DTYPES, RegionSlice, Tensor

# place in the row, name, datatype, shape, and the region with offset and size where the data is not in the row
Told = list[Any]


def is_odd(tensor: Tensor) -> bool:
    """Say whether `tensor` must be told of."""
    data = tensor.data
    if type(data) is not np.ndarray:
        return True
    if tensor.datatype == "BYTES":
        return data.ndim != 1 or any([size < 0 for size in tensor.shape])
    return data.shape != tensor.shape or tensor.datatype not in DTYPES


def tell(row: Iterable[Tensor]) -> tuple[list[Tensor], list[Told]]:
    """Return the row as it can travel, and what to tell of it."""
    travels: list[Tensor] = []
    told: list[Told] = []
    for place, tensor in enumerate(row):
        if not is_odd(tensor):
            travels.append(tensor)
        elif isinstance(tensor.data, RegionSlice):
            part = tensor.data
            told.append(
                [place, tensor.name, tensor.datatype, tensor.shape, [part.name, part.offset, part.byte_size]]
            )  # fmt: skip
        else:
            flat = np.ascontiguousarray(tensor.data).reshape(-1).view(np.uint8)
            travels.append(Tensor(tensor.name, "BYTES", (len(flat),), flat))
            told.append([place, tensor.name, tensor.datatype, tensor.shape])
    return travels, told


def restore(row: Sequence[Tensor], told: Sequence[Told]) -> list[Tensor]:
    """Return the row as it was given to `tell`. Raises ProtocolError."""
    tensors = list(row)
    try:
        for place, name, datatype, shape, *region in told:
            if region:
                tensors.insert(place, Tensor(name, datatype, tuple(shape), RegionSlice(*region[0])))
            else:
                tensors[place] = Tensor(name, datatype, tuple(shape), tensors[place].data)
    except (IndexError, TypeError, ValueError) as error:
        raise ProtocolError(f"what is told of tensors does not fit them: {error!r}") from error
    return tensors
