"""Generated inputs: random values and zeros."""

from __future__ import annotations

import math
import string

import numpy as np
import numpy.typing as npt

from tritonpy import DTYPES
from tritonpy_load_generator.inputs.tensor import InputTensor, from_values
from tritonpy_load_generator.options import BadUsage, LoadOptions
from tritonpy_load_generator.target.metadata import TensorDescription

_LETTERS = np.array(list(string.ascii_letters + string.digits))
_INTEGER_BOUND = 100


def random_tensor(
    tensor: TensorDescription,
    shape: tuple[int, ...],
    options: LoadOptions,
    rng: np.random.Generator,
) -> InputTensor:
    """Return a tensor of integers 0 to 99, floats 0 to 1, or strings of letters and digits."""
    if tensor.datatype == "BYTES":
        return from_values(tensor.name, "BYTES", shape, _texts(math.prod(shape), options, rng))
    dtype = _dtype(tensor)
    values: npt.NDArray[np.generic] = (
        rng.integers(
            0, 2 if tensor.datatype == "BOOL" else _INTEGER_BOUND, math.prod(shape)
        ).astype(dtype)
        if np.issubdtype(dtype, np.integer) or tensor.datatype == "BOOL"
        else rng.random(math.prod(shape), np.float32).astype(dtype)
    )
    return InputTensor(tensor.name, tensor.datatype, shape, values.tobytes())


def zero_tensor(
    tensor: TensorDescription, shape: tuple[int, ...], options: LoadOptions
) -> InputTensor:
    """Return a tensor of zeros; strings are empty or the value of `--string-data`."""
    if tensor.datatype == "BYTES":
        return from_values(
            tensor.name, "BYTES", shape, [options.string_data or ""] * math.prod(shape)
        )
    return InputTensor(
        tensor.name, tensor.datatype, shape, bytes(math.prod(shape) * _dtype(tensor).itemsize)
    )


def _texts(count: int, options: LoadOptions, rng: np.random.Generator) -> list[str]:
    if options.string_data is not None:
        return [options.string_data] * count
    letters = rng.choice(_LETTERS, (count, options.string_length))
    return ["".join(row) for row in letters]


def _dtype(tensor: TensorDescription) -> np.dtype[np.generic]:
    if tensor.datatype not in DTYPES:
        raise BadUsage(f"input '{tensor.name}' has the unknown type {tensor.datatype}")
    return DTYPES[tensor.datatype]
