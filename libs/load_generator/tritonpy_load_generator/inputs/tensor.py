"""Input tensors as they are sent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from tritonpy import DTYPES, decode_strings, encode_strings
from tritonpy.frontend import ITEMSIZES, string_offsets
from tritonpy_load_generator.options import BadUsage


class InputTensor(msgspec.Struct, frozen=True):
    """Name, datatype, shape (with any batch dimension), and bytes of the binary protocol."""

    name: str
    datatype: str
    shape: tuple[int, ...]
    content: bytes

    def as_json(self) -> list[Any]:
        """Return the elements as a flat JSON list.

        Raises BadUsage for types without a JSON form.
        """
        if self.datatype == "BYTES":
            raw = np.frombuffer(self.content, np.uint8)
            return [
                element.decode("utf-8", "replace")
                for element in decode_strings(raw, string_offsets(raw))
            ]
        if self.datatype in {"FP16", "BF16"}:
            raise BadUsage(
                f"input '{self.name}' is {self.datatype}, which JSON does not support: "
                "use --input-tensor-format binary"
            )
        return list(np.frombuffer(self.content, DTYPES[self.datatype]).tolist())


def from_values(
    name: str, datatype: str, shape: Sequence[int], values: Sequence[Any]
) -> InputTensor:
    """Make a tensor from flat or nested values.

    Raises BadUsage if they do not fit type or shape.
    """
    count = math.prod(shape)
    if datatype == "BYTES":
        texts = [
            str(value) if not isinstance(value, bytes) else value for value in _flatten(values)
        ]
        _check_count(name, shape, count, len(texts))
        return InputTensor(name, datatype, tuple(shape), encode_strings(texts).tobytes())
    try:
        array: npt.NDArray[Any] = np.asarray(_flatten(values)).astype(_dtype(name, datatype))
    except (TypeError, ValueError, OverflowError) as error:
        raise BadUsage(
            f"the data of input '{name}' do not have its type {datatype}: {error}"
        ) from error
    _check_count(name, shape, count, array.size)
    return InputTensor(name, datatype, tuple(shape), array.tobytes())


def from_bytes(name: str, datatype: str, shape: Sequence[int], content: bytes) -> InputTensor:
    """Make a tensor from its bytes. Raises BadUsage if there are too few or too many."""
    itemsize = ITEMSIZES.get(datatype)
    if itemsize and len(content) != math.prod(shape) * itemsize:
        raise BadUsage(
            f"input '{name}' of shape {list(shape)} and type {datatype} takes "
            f"{math.prod(shape) * itemsize} bytes, got {len(content)}"
        )
    return InputTensor(name, datatype, tuple(shape), content)


def stack_batch(elements: Sequence[InputTensor]) -> InputTensor:
    """Join elements without batch dimension into a batch.

    Raises BadUsage if their shapes differ.
    """
    first = elements[0]
    for other in elements:
        if other.shape != first.shape:
            raise BadUsage(
                f"input '{first.name}' has the shapes {list(first.shape)} and "
                f"{list(other.shape)} in one batch: "
                "use -b 1, or data of equal shape"
            )
    content = b"".join(each.content for each in elements)
    return InputTensor(first.name, first.datatype, (len(elements), *first.shape), content)


def _dtype(name: str, datatype: str) -> np.dtype[Any]:
    if datatype not in DTYPES:
        raise BadUsage(f"input '{name}' has the unknown type {datatype}")
    return DTYPES[datatype]


def _flatten(values: Any) -> list[Any]:
    if not isinstance(values, (list, tuple)):
        return [values]
    if not any(isinstance(value, (list, tuple)) for value in values):
        return list(values)
    return [element for value in values for element in _flatten(value)]


def _check_count(name: str, shape: Sequence[int], expected: int, found: int) -> None:
    if expected != found:
        raise BadUsage(
            f"input '{name}' of shape {list(shape)} takes {expected} elements, got {found}"
        )
