"""Packing of the tensors of many requests into blocks of bytes, and unpacking."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .blocks import Block, BlockView, row_group
from .frame import ALIGNMENT, ProtocolError, aligned
from .signatures import Column, RequestedOutputs, SignatureReader, SignatureWriter

_PADDING = [bytes(count) for count in range(ALIGNMENT)]
_MAX_ROWS = 1 << 20  # of one frame: a larger number is invalid
# The tensors of a request, each with name, datatype, shape and C-contiguous data.
Row = Sequence[Any]


def pack(
    rows: Sequence[Row], requested: Sequence[RequestedOutputs], signatures: SignatureWriter
) -> tuple[list[int], list[Any], int]:
    """Return words that describe `rows`, the padded buffers of their data, and the total bytes.

    Consecutive rows with the same signature form a group. The words of a group are the number of
    the signature, the number of rows, and the size of each row of each BYTES tensor.
    """
    words: list[int] = [0]
    parts: list[Any] = []
    size = 0
    start, count = 0, len(rows)
    while start < count:
        first, outputs = rows[start], requested[start]
        if isinstance(first, BlockView):
            start, size = _pack_block_rows(rows, requested, start, words, parts, size, signatures)
            continue
        stop = start + 1
        while stop < count and requested[stop] == outputs and _has_same_layout(first, rows[stop]):
            stop += 1
        words[0] += 1
        words += (signatures.number(first, outputs), stop - start)
        for index, tensor in enumerate(first):
            arrays = [row[index].data for row in rows[start:stop]]
            if tensor.datatype == "BYTES":
                sizes = [array.nbytes for array in arrays]
                words += sizes
                used = sum(sizes)
            else:
                used = tensor.data.nbytes * len(arrays)
                if tensor.datatype == "BF16":  # numpy has no buffer format for this type
                    arrays = [array.view(np.uint16) for array in arrays]
            parts += arrays
            size = _padded(parts, size + used)
        start = stop
    return words, parts, size


def _pack_block_rows(
    rows: Sequence[Row],
    requested: Sequence[RequestedOutputs],
    start: int,
    words: list[int],
    parts: list[Any],
    size: int,
    signatures: SignatureWriter,
) -> tuple[int, int]:
    """Add a group of rows that lie in blocks; return its end and the new size."""
    stop, columns = row_group(rows, requested, start)
    first: Any = rows[start]
    words[0] += 1
    words += (signatures.number(first.block.signature.columns, requested[start]), stop - start)
    for arrays in columns:
        parts += arrays
        size = _padded(parts, size + sum([array.size for array in arrays]))
    return stop, size


def _padded(parts: list[Any], size: int) -> int:
    if size % ALIGNMENT:
        padding = _PADDING[aligned(size) - size]
        parts.append(padding)
        size += len(padding)
    return size


def _has_same_layout(one: Row, other: Row) -> bool:
    if isinstance(other, BlockView) or len(one) != len(other):
        return False
    # A generator expression doubles the cost per row.
    for a, b in zip(one, other):
        if a.shape != b.shape or a.name != b.name or a.datatype != b.datatype:
            return False
    return True


def copy_into(target: np.ndarray, parts: Sequence[Any]) -> None:
    """Write the buffers consecutively: the only copy on the way to the other process."""
    at = 0
    for part in parts:
        size = len(part) if isinstance(part, bytes) else part.nbytes
        if size:
            target[at : at + size] = np.frombuffer(part, np.uint8)
            at += size


def unpack(
    words: Sequence[int],
    at: int,
    payload: np.ndarray,
    signatures: SignatureReader,
    make: Callable[..., Any],
    make_row: Callable[[Block, int], Any] | None = None,
) -> tuple[list[Row], list[RequestedOutputs]]:
    """Return the rows described by `words` from index `at` on, as views of `payload`.

    `make(name, datatype, shape, array)` creates a tensor. Rows of fixed size stay in their block if
    `make_row(block, index)` is given, which returns the object that stands for such a row. Raises
    `ProtocolError` for words that do not match the payload.
    """
    rows: list[Row] = []
    requested: list[RequestedOutputs] = []
    offset = 0
    try:
        groups, at = words[at], at + 1
        for _ in range(groups):
            signature, count = signatures.get(words[at]), words[at + 1]
            at += 2
            _limit(len(rows) + count)
            requested += [signature.requested] * count
            if make_row is not None and signature.sized:
                block = Block(signature, count, payload, offset, make)
                offset = block.end
                rows += [make_row(block, index) for index in range(count)]
                continue
            columns = []
            for column in signature.columns:
                sizes: Sequence[int] = ()
                if column.nbytes is None:
                    sizes, at = words[at : at + count], at + count
                arrays, offset = _read_column(payload, offset, column, count, sizes)
                name, datatype, shape = column.name, column.datatype, column.shape
                columns.append([make(name, datatype, shape, array) for array in arrays])
            rows += zip(*columns) if columns else [()] * count
    except (IndexError, ValueError) as error:
        raise ProtocolError(f"invalid tensors in a frame: {error}") from error
    return rows, requested


def _limit(count: int) -> None:
    if count > _MAX_ROWS:
        raise ValueError(f"{count} rows")


def _read_column(
    payload: np.ndarray, offset: int, column: Column, count: int, sizes: Sequence[int]
) -> tuple[list[np.ndarray], int]:
    if column.dtype is None or column.nbytes is None:
        arrays = []
        for size in sizes:
            arrays.append(payload[offset : offset + size])
            offset += size
        if offset > payload.size or len(arrays) != count:
            raise ValueError("strings beyond the end")
        return arrays, aligned(offset)
    stop = aligned(offset + column.nbytes * count)
    if stop > payload.size:
        raise ValueError("numbers beyond the end")
    if count == 1:
        return [np.ndarray(column.shape, column.dtype, payload, offset)], stop
    if column.shape:
        return list(np.ndarray((count, *column.shape), column.dtype, payload, offset)), stop
    size = column.nbytes
    return [
        np.ndarray((), column.dtype, payload, offset + size * index) for index in range(count)
    ], stop
