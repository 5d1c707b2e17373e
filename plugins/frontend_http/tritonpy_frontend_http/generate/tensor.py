"""A JSON value -> the tensor of an input, whose shape follows from the number of elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tritonpy import ITEMSIZES, InvalidArgument, Tensor, TensorMetadata
from tritonpy_frontend_http.json_tensors import from_json, strings_from_json


class Allowance:
    """How many bytes of tensors one JSON object may hold."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._used = 0

    def use(self, name: str, size: int) -> None:
        """Take `size` bytes for the input `name`; raises InvalidArgument where so many are not left."""
        if self._used + size > self.limit:
            raise InvalidArgument(
                f"request size of {self._used} bytes with input '{name}' of size {size} bytes exceeds the maximum allowed "
                f"input size of {self.limit}. Use --http-max-input-size to increase the limit."
            )
        self._used += size


def read_tensor(expected: TensorMetadata, value: Any, allowance: Allowance) -> Tensor:
    """Return the tensor for the input `expected`: `value` is its only element, or the array of them.

    What has no bytes becomes a tensor without dimensions, which only a model that wants none takes.
    Raises TritonError in Triton's words: values of another type, a number of elements that fits no shape, too many bytes.
    """
    name, datatype = expected.name, expected.datatype
    elements = value if type(value) is list else [value]
    strings = strings_from_json(elements) if datatype == "BYTES" else None
    size = len(elements) * ITEMSIZES[datatype] if strings is None else strings.nbytes
    if size == 0:
        return Tensor(name, datatype, (), np.empty(0, np.uint8))
    allowance.use(name, size)
    shape = fit_shape(name, expected.shape, len(elements))
    if strings is not None:
        return Tensor(name, datatype, shape, strings)
    return from_json(name, datatype, shape, elements, allowance.limit)


def fit_shape(name: str, shape: Sequence[int], count: int) -> tuple[int, ...]:
    """Return `shape` for `count` elements: what the fixed dimensions leave goes to the last variable one, the others are 1.

    Raises InvalidArgument where that does not come out even.
    """
    left, fitted = count, []
    for dim in shape:
        if dim != -1:
            if dim == 0 or left % dim:
                raise _no_fit(name)
            left //= dim
    for dim in reversed(shape):
        if dim == -1:
            fitted.append(left)
            left = 1
        else:
            fitted.append(dim)
    if left != 1:
        raise _no_fit(name)
    return tuple(reversed(fitted))


def _no_fit(name: str) -> InvalidArgument:
    return InvalidArgument(f"The schema can not convert input '{name}' to tensor with proper shape")
