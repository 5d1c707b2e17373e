"""A tensor as it is sent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from tritonpy import DTYPES, ITEMSIZES, decode_strings, encode_strings, string_offsets
from tritonpy_bench.options import BadUsage


class InputTensor(msgspec.Struct, frozen=True):
    """Name, wire type, shape with the batch where there is one, and the bytes of the binary protocol."""

    name: str
    datatype: str
    shape: tuple[int, ...]
    content: bytes

    def as_json(self) -> list[Any]:
        """Return the elements as JSON carries them, flat. Raises BadUsage for a type that JSON cannot carry."""
        if self.datatype == "BYTES":
            raw = np.frombuffer(self.content, np.uint8)
            return [element.decode("utf-8", "replace") for element in decode_strings(raw, string_offsets(raw))]
        if self.datatype in {"FP16", "BF16"}:
            raise BadUsage(
                f"input '{self.name}' is {self.datatype}, which JSON cannot carry: use --input-tensor-format binary"
            )
        return list(np.frombuffer(self.content, DTYPES[self.datatype]).tolist())


def from_values(name: str, datatype: str, shape: Sequence[int], values: Sequence[Any]) -> InputTensor:
    """Make a tensor of flat or nested values. Raises BadUsage where they do not fit the type or the shape."""
    count = math.prod(shape)
    if datatype == "BYTES":
        texts = [str(value) if not isinstance(value, bytes) else value for value in _flat(values)]
        _check_count(name, shape, count, len(texts))
        return InputTensor(name, datatype, tuple(shape), encode_strings(texts).tobytes())
    try:
        array: npt.NDArray[Any] = np.asarray(_flat(values)).astype(_dtype(name, datatype))
    except (TypeError, ValueError, OverflowError) as error:
        raise BadUsage(f"the data of input '{name}' are not of its type {datatype}: {error}") from error
    _check_count(name, shape, count, array.size)
    return InputTensor(name, datatype, tuple(shape), array.tobytes())


def from_bytes(name: str, datatype: str, shape: Sequence[int], content: bytes) -> InputTensor:
    """Make a tensor of its bytes. Raises BadUsage where there are too few or too many."""
    itemsize = ITEMSIZES.get(datatype)
    if itemsize and len(content) != math.prod(shape) * itemsize:
        raise BadUsage(
            f"input '{name}' of the shape {list(shape)} and type {datatype} takes {math.prod(shape) * itemsize} bytes, there are {len(content)}"
        )
    return InputTensor(name, datatype, tuple(shape), content)


def batched(elements: Sequence[InputTensor]) -> InputTensor:
    """Join elements of a batch, each without a batch dimension. Raises BadUsage where their shapes differ."""
    first = elements[0]
    for other in elements:
        if other.shape != first.shape:
            raise BadUsage(
                f"input '{first.name}' has the shapes {list(first.shape)} and {list(other.shape)} in one batch: "
                "use -b 1, or data of one shape"
            )
    content = b"".join(each.content for each in elements)
    return InputTensor(first.name, first.datatype, (len(elements), *first.shape), content)


def _dtype(name: str, datatype: str) -> np.dtype[Any]:
    if datatype not in DTYPES:
        raise BadUsage(f"input '{name}' has the type {datatype}, which is not known")
    return DTYPES[datatype]


def _flat(values: Any) -> list[Any]:
    if not isinstance(values, (list, tuple)):
        return [values]
    if not any(isinstance(value, (list, tuple)) for value in values):
        return list(values)
    return [element for value in values for element in _flat(value)]


def _check_count(name: str, shape: Sequence[int], expected: int, found: int) -> None:
    if expected != found:
        raise BadUsage(f"input '{name}' of the shape {list(shape)} takes {expected} elements, there are {found}")
