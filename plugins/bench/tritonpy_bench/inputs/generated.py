"""Inputs that need no file: random ones and zeros."""

from __future__ import annotations

import math
import string

import numpy as np
import numpy.typing as npt

from tritonpy import DTYPES
from tritonpy_bench.inputs.tensor import InputTensor, from_values
from tritonpy_bench.options import BadUsage, BenchOptions
from tritonpy_bench.target.facts import TensorFacts

_LETTERS = np.array(list(string.ascii_letters + string.digits))
_MOST = 100


def random_tensor(
    facts: TensorFacts, shape: tuple[int, ...], options: BenchOptions, chance: np.random.Generator
) -> InputTensor:
    """Return integers from 0 to 99, numbers from 0 to 1, or strings of letters and digits."""
    if facts.datatype == "BYTES":
        return from_values(facts.name, "BYTES", shape, _texts(math.prod(shape), options, chance))
    dtype = _dtype(facts)
    values: npt.NDArray[np.generic] = (
        chance.integers(0, 2 if facts.datatype == "BOOL" else _MOST, math.prod(shape)).astype(dtype)
        if np.issubdtype(dtype, np.integer) or facts.datatype == "BOOL"
        else chance.random(math.prod(shape), np.float32).astype(dtype)
    )
    return InputTensor(facts.name, facts.datatype, shape, values.tobytes())


def zero_tensor(facts: TensorFacts, shape: tuple[int, ...], options: BenchOptions) -> InputTensor:
    """Return zeros; strings are empty, or what `--string-data` says."""
    if facts.datatype == "BYTES":
        return from_values(facts.name, "BYTES", shape, [options.string_data or ""] * math.prod(shape))
    return InputTensor(facts.name, facts.datatype, shape, bytes(math.prod(shape) * _dtype(facts).itemsize))


def _texts(count: int, options: BenchOptions, chance: np.random.Generator) -> list[str]:
    if options.string_data is not None:
        return [options.string_data] * count
    letters = chance.choice(_LETTERS, (count, options.string_length))
    return ["".join(row) for row in letters]


def _dtype(facts: TensorFacts) -> np.dtype[np.generic]:
    if facts.datatype not in DTYPES:
        raise BadUsage(f"input '{facts.name}' has the type {facts.datatype}, which is not known")
    return DTYPES[facts.datatype]
