"""The rows of the output: results of the model, kept columns, and what failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tritonpy import DTYPES, Tensor
from tritonpy_batch.model_interface import RowTensor
from tritonpy_types import shape_text

Array = npt.NDArray[Any]
Results = Sequence[tuple[Sequence[int], Tensor]]
"""Tensors with the indexes of their rows; consecutive rows are a `range`."""
_FREE_SIZE, _TEXT_BYTES = 16, 64
ERROR, ATTEMPTS = "_error", "_attempts"
_CLASS = pa.struct([("score", pa.float32()), ("index", pa.int32()), ("label", pa.string())])
_ARROW_TYPES = {
    "BOOL": pa.bool_(), "FP16": pa.float16(), "BF16": pa.float32(), "FP32": pa.float32(),
    "FP64": pa.float64(),
    **{f"{sign}INT{size}": getattr(pa, f"{sign.lower()}int{size}")()
       for sign in ("", "U") for size in (8, 16, 32, 64)},
}  # fmt: skip


class OutputColumn(msgspec.Struct, frozen=True):
    """One output in the result: `top` > 0 is a list of that many classes.

    A row of shape [1] is a single value. `binary`: BYTES stay bytes, otherwise they are text.
    """

    spec: RowTensor
    top: int = 0
    binary: bool = False

    @property
    def row_bytes(self) -> int:
        """About how many bytes a row takes in memory; free dimensions and texts are guessed."""
        itemsize = DTYPES[self.spec.datatype].itemsize if self.spec.datatype != "BYTES" else 0
        return prod(dim if dim > 0 else _FREE_SIZE for dim in self.spec.dims) * (
            itemsize or _TEXT_BYTES
        )

    @property
    def field(self) -> pa.Field:
        """The column's name and type."""
        if self.top:
            return pa.field(self.spec.name, pa.list_(_CLASS))
        if self.spec.datatype == "BYTES":
            kind = pa.binary() if self.binary else pa.string()
        else:
            kind = _ARROW_TYPES[self.spec.datatype]
        for dim in reversed(self._dims):
            kind = pa.list_(kind, dim)
        return pa.field(self.spec.name, kind)

    @property
    def _dims(self) -> tuple[int, ...]:
        return () if self.spec.dims == (1,) else self.spec.dims

    def column(self, results: Results, count: int, errors: dict[int, str]) -> pa.Array:
        """Return the column for `count` rows from tensors and the indexes of their rows.

        Rows without a result are null. Rows whose result has no place in the column get an error.
        """
        if self.top:
            return self._classes(results, count)
        if self.spec.datatype == "BYTES":
            return self._texts(results, count, errors)
        if -1 in self.spec.dims:
            return self._variable(results, count, errors)
        width = prod(self.spec.dims)
        if _complete(results, count, width):
            parts = [tensor.numpy().reshape(-1) for _, tensor in results]
            return _nested(parts[0] if len(parts) == 1 else np.concatenate(parts), self._dims, None)
        placed = np.zeros((count, width), DTYPES[self.spec.datatype])
        mask = np.ones(count, np.bool_)
        for rows, tensor in results:
            array = tensor.numpy()
            if array.size == len(rows) * width:
                placed[rows] = array.reshape(len(rows), width)
                mask[rows] = False
            else:
                errors |= dict.fromkeys(rows, _mismatch(self.spec, array.shape))
        return _nested(placed.reshape(-1), self._dims, mask)

    def _classes(self, results: Results, count: int) -> pa.Array:
        """Return the classes of the protocol's texts `SCORE:INDEX:LABEL`."""
        column: list[Any] = [None] * count
        for rows, tensor in results:
            texts = tensor.strings()
            size = len(texts) // max(len(rows), 1)
            for at, row in enumerate(rows):
                column[row] = [_class(text) for text in texts[at * size : (at + 1) * size]]
        return pa.array(column, self.field.type)

    def _texts(self, results: Results, count: int, errors: dict[int, str]) -> pa.Array:
        column: list[Any] = [None] * count
        dims = self._dims
        for rows, tensor in results:
            parts = tensor.numpy().reshape(len(rows), -1)
            shape = tensor.shape[len(tensor.shape) - len(self.spec.dims) :]
            for row, part in zip(rows, parts, strict=True):
                try:
                    flat = list(part) if self.binary else [each.decode() for each in part]
                except UnicodeDecodeError:
                    errors[row] = f"output '{self.spec.name}' is no UTF-8: use --strings binary"
                    continue
                if not dims and len(flat) == 1:
                    column[row] = flat[0]
                elif dims and prod(shape) == len(flat) and _fits(shape, self.spec.dims):
                    column[row] = _as_lists(flat, shape)
                else:
                    errors[row] = _mismatch(self.spec, tensor.shape)
        return pa.array(column, self.field.type)

    def _variable(self, results: Results, count: int, errors: dict[int, str]) -> pa.Array:
        dims = self.spec.dims
        column: list[Any] = [None] * count
        for rows, tensor in results:
            array = tensor.numpy()
            shape = array.shape[len(array.shape) - len(dims) :]
            if array.size != len(rows) * prod(shape) or not _fits(shape, dims):
                errors |= dict.fromkeys(rows, _mismatch(self.spec, array.shape))
                continue
            for row, part in zip(rows, array.reshape(len(rows), *shape), strict=True):
                column[row] = part if len(dims) == 1 else part.tolist()
        return pa.array(column, self.field.type)


def output_schema(outputs: Sequence[OutputColumn], kept: pa.Schema) -> pa.Schema:
    """Return the columns of a part: kept columns, outputs, `_error` and `_attempts`."""
    fields = [*kept, *(each.field for each in outputs)]
    return pa.schema([*fields, (ERROR, pa.string()), (ATTEMPTS, pa.int32())])


def failure_columns(
    errors: Mapping[int, str], attempts: Mapping[int, int], count: int
) -> list[pa.Array]:
    """Return the columns `_error` and `_attempts`; rows that were not sent have 0 attempts."""
    tried = np.ones(count, np.int32)
    for row, number in attempts.items():
        tried[row] = number
    texts = [errors.get(row) for row in range(count)] if errors else [None] * count
    return [pa.array(texts, pa.string()), pa.array(tried)]


def _complete(results: Results, count: int, width: int) -> bool:
    """Return whether results have every row once and in order, with `width` values each."""
    at = 0
    for rows, tensor in results:
        if not isinstance(rows, range) or rows.start != at:
            return False
        if prod(tensor.shape) != len(rows) * width:
            return False
        at = rows.stop
    return at == count


def _nested(values: Array, dims: tuple[int, ...], mask: Array | None) -> pa.Array:
    """Return flat values as nested lists of fixed size; rows of `mask` are null."""
    if values.dtype == DTYPES["BF16"]:
        values = values.astype(np.float32)
    if not dims:
        return pa.array(values, mask=mask)
    column = pa.array(values)
    for at, dim in reversed(list(enumerate(dims))):
        nulls = pa.array(mask) if mask is not None and at == 0 else None
        column = pa.FixedSizeListArray.from_arrays(column, dim, mask=nulls)
    return column


def _class(text: bytes) -> dict[str, Any]:
    score, _, rest = text.decode("utf-8", "replace").partition(":")
    index, _, label = rest.partition(":")
    return {"score": float(score), "index": int(index), "label": label or None}


def _fits(shape: tuple[int, ...], dims: tuple[int, ...]) -> bool:
    return len(shape) == len(dims) and all(
        dim in (-1, size) for dim, size in zip(dims, shape, strict=True)
    )


def _as_lists(flat: list[Any], shape: tuple[int, ...]) -> Any:
    array = np.empty(len(flat), np.object_)
    array[:] = flat
    return array.reshape(shape).tolist()


def _mismatch(spec: RowTensor, shape: tuple[int, ...]) -> str:
    return f"output '{spec.name}' has the shape {shape_text(shape)}, not {shape_text(spec.dims)}"
