"""Ragged inputs: one flat array for inputs of different shapes (`allow_ragged_batch`).

Pure functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from tritonpy.types import DTYPES, Tensor

Array = npt.NDArray[Any]
Allocate = Callable[[str, str, tuple[int, ...]], Array]


def flatten_ragged(tensors: Sequence[Tensor | None], like: Tensor, out: Allocate | None = None) -> Tensor:
    """Return the elements of all `tensors` as one tensor of shape [elements].

    It has the name and type of `like`. None is a slot without data: one row of zeros (empty strings
    for BYTES) with the shape of `like`. A single tensor is not copied. `out` is that of `gather`.
    """
    parts = [_hole(like) if tensor is None else _elements(tensor) for tensor in tensors]
    if like.datatype == "BYTES":
        count = sum([prod(like.shape[1:]) if tensor is None else prod(tensor.shape) for tensor in tensors])
        return Tensor(like.name, "BYTES", (count,), _joined(parts))
    return Tensor.from_numpy(like.name, _joined(parts, None if out is None else _memory(like, parts, out)))


def _joined(parts: Sequence[Array], memory: Array | None = None) -> Array:
    return parts[0] if len(parts) == 1 and memory is None else np.concatenate(parts, out=memory)


def _memory(like: Tensor, parts: Sequence[Array], out: Allocate) -> Array:
    return out(like.name, like.datatype, (sum([part.size for part in parts]),))


def _elements(tensor: Tensor) -> Array:
    data: Array = tensor.data if tensor.datatype == "BYTES" else tensor.numpy().reshape(-1)
    return data


def _hole(like: Tensor) -> Array:
    count = prod(like.shape[1:])
    return np.zeros(4 * count, np.uint8) if like.datatype == "BYTES" else np.zeros(count, DTYPES[like.datatype])
