"""Decoding of a JSON value into an input tensor, with a shape inferred from the element count."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tritonpy import InvalidArgument, Tensor
from tritonpy.frontend import ITEMSIZES, TensorMetadata
from tritonpy_http_api.json_tensors import from_json, strings_from_json


class ByteBudget:
    """The number of tensor bytes that one JSON object may contain."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._used = 0

    def use(self, name: str, size: int) -> None:
        """Consume `size` bytes for the input `name`.

        Raises InvalidArgument if the budget is exceeded.
        """
        if self._used + size > self.limit:
            raise InvalidArgument(
                f"request size of {self._used} bytes with input '{name}' of size {size} bytes "
                "exceeds the maximum allowed "
                f"input size of {self.limit}. Use --http-max-input-size to increase the limit."
            )
        self._used += size


def read_tensor(expected: TensorMetadata, value: Any, budget: ByteBudget) -> Tensor:
    """Return the tensor for the input `expected`; `value` is one element or an array of elements.

    An empty value becomes a tensor without dimensions. Raises TritonError with Triton's texts if a
    value has the wrong type, the element count fits no shape, or the budget is exceeded.
    """
    name, datatype = expected.name, expected.datatype
    elements = value if type(value) is list else [value]
    strings = strings_from_json(elements) if datatype == "BYTES" else None
    size = len(elements) * ITEMSIZES[datatype] if strings is None else strings.nbytes
    if size == 0:
        return Tensor(name, datatype, (), np.empty(0, np.uint8))
    budget.use(name, size)
    shape = fit_shape(name, expected.shape, len(elements))
    if strings is not None:
        return Tensor(name, datatype, shape, strings)
    return from_json(name, datatype, shape, elements, budget.limit)


def fit_shape(name: str, shape: Sequence[int], count: int) -> tuple[int, ...]:
    """Return `shape` with its variable dimensions filled in for `count` elements.

    The last variable dimension takes the remaining factor, the others are 1. Raises InvalidArgument
    if `count` does not fit.
    """
    left, fitted = count, []
    for dim in shape:
        if dim != -1:
            if dim == 0 or left % dim:
                raise _shape_error(name)
            left //= dim
    for dim in reversed(shape):
        if dim == -1:
            fitted.append(left)
            left = 1
        else:
            fitted.append(dim)
    if left != 1:
        raise _shape_error(name)
    return tuple(reversed(fitted))


def _shape_error(name: str) -> InvalidArgument:
    return InvalidArgument(f"The schema can not convert input '{name}' to tensor with proper shape")
