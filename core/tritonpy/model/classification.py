"""The classification extension: the top classes of an output instead of its data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tritonpy.errors import InvalidArgument
from tritonpy.types import Tensor, encode_strings

MAX_ELEMENTS = 1_000_000
_TYPES = frozenset(
    ("UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64", "FP32", "FP64")
)  # fmt: skip


def classify(tensor: Tensor, count: int, labels: Sequence[str], batched: bool) -> Tensor:
    """Return the top `count` classes of each row as a BYTES tensor, best first.

    Elements are "value:index:label", or "value:index" if the label is missing or empty. The shape
    is [batch, k], or [k] without a batch dimension, with k = min(count, classes). Raises
    `InvalidArgument` for datatypes that the extension does not support, and above 1,000,000
    elements per row.
    """
    if tensor.datatype not in _TYPES:
        raise InvalidArgument(f"class result not available for output due to unsupported type '{tensor.datatype}'")
    data: npt.NDArray[Any] = tensor.numpy()
    rows = data.reshape(data.shape[0], -1) if batched else data.reshape(1, -1)
    if rows.size > MAX_ELEMENTS * max(len(rows), 1):
        raise InvalidArgument("classification output tensor too large")
    best = min(count, rows.shape[1])
    texts = [text for row in rows for text in _best(row, best, labels)]
    shape = (len(rows), best) if batched else (best,)
    return Tensor(tensor.name, "BYTES", shape, encode_strings(texts))


def _best(row: npt.NDArray[Any], count: int, labels: Sequence[str]) -> list[str]:
    # Equal values are ordered by index, so that results are reproducible.
    order = np.lexsort((np.arange(row.size), _descending(row)))[:count]
    return [_text(row[index], int(index), labels) for index in order]


def _descending(row: npt.NDArray[Any]) -> npt.NDArray[Any]:
    # ~x reverses the order of integers and, unlike -x, never overflows
    falling: npt.NDArray[Any] = np.negative(row) if row.dtype.kind == "f" else np.invert(row)
    return falling


def _text(value: Any, index: int, labels: Sequence[str]) -> str:
    number = f"{float(value):.6f}" if value.dtype.kind == "f" else str(int(value))
    label = labels[index] if index < len(labels) else ""
    return f"{number}:{index}:{label}" if label else f"{number}:{index}"
