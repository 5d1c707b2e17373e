"""The tensors of many requests as blocks of bytes, and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .blocks import Block, Placed, neighbours
from .frame import ALIGNMENT, ProtocolError, aligned
from .signatures import Column, Known, Wants, Written

_PADDING = [bytes(count) for count in range(ALIGNMENT)]
_MOST_ROWS = 1 << 20  # of one frame: a number beyond it is garbage
Row = Sequence[Any]  # the tensors of one request, each with name, datatype, shape and data (a C-contiguous array)


def pack(rows: Sequence[Row], wants: Sequence[Wants], written: Written) -> tuple[list[int], list[Any], int]:
    """Return words that describe `rows`, the buffers of their data with padding, and how many bytes these are.

    Neighbours with the same signature make a group; its words are the signature's number, the rows, and per BYTES tensor the size of each row.
    """
    words: list[int] = [0]
    parts: list[Any] = []
    size = 0
    start, count = 0, len(rows)
    while start < count:
        first, wanted = rows[start], wants[start]
        if isinstance(first, Placed):
            start, size = _pass_on(rows, wants, start, words, parts, size, written)
            continue
        stop = start + 1
        while stop < count and wants[stop] == wanted and _alike(first, rows[stop]):
            stop += 1
        words[0] += 1
        words += (written.number(first, wanted), stop - start)
        for index, tensor in enumerate(first):
            arrays = [row[index].data for row in rows[start:stop]]
            if tensor.datatype == "BYTES":
                sizes = [array.nbytes for array in arrays]
                words += sizes
                used = sum(sizes)
            else:
                used = tensor.data.nbytes * len(arrays)
                if tensor.datatype == "BF16":  # numpy cannot lend out the buffer of a type that it does not know
                    arrays = [array.view(np.uint16) for array in arrays]
            parts += arrays
            size = _padded(parts, size + used)
        start = stop
    return words, parts, size


def _pass_on(
    rows: Sequence[Row],
    wants: Sequence[Wants],
    start: int,
    words: list[int],
    parts: list[Any],
    size: int,
    written: Written,
) -> tuple[int, int]:
    """Add a group of rows that lie in blocks; return where it ends, and the size with it."""
    stop, columns = neighbours(rows, wants, start)
    first: Any = rows[start]
    words[0] += 1
    words += (written.number(first.block.signature.columns, wants[start]), stop - start)
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


def _alike(one: Row, other: Row) -> bool:
    if isinstance(other, Placed) or len(one) != len(other):
        return False
    for a, b in zip(one, other):  # noqa: SIM110  once per row: a generator costs as much as the comparison
        if a.shape != b.shape or a.name != b.name or a.datatype != b.datatype:
            return False
    return True


def copy_into(target: np.ndarray, parts: Sequence[Any]) -> None:
    """Write the buffers one behind the other: the one copy on the way to the other process."""
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
    known: Known,
    make: Callable[..., Any],
    place: Callable[[Block, int], Any] | None = None,
) -> tuple[list[Row], list[Wants]]:
    """Return the rows that `words` from index `at` on describe, as views on `payload`; `make(name, datatype, shape, array)` makes a tensor.

    Rows that can stay in their block are left there where `place(block, index)` says what then stands for one.
    Raises ProtocolError for what does not fit.
    """
    rows: list[Row] = []
    wants: list[Wants] = []
    offset = 0
    try:
        groups, at = words[at], at + 1
        for _ in range(groups):
            signature, count = known.get(words[at]), words[at + 1]
            at += 2
            _limit(len(rows) + count)
            wants += [signature.wants] * count
            if place is not None and signature.sized:
                block = Block(signature, count, payload, offset, make)
                offset = block.end
                rows += [place(block, index) for index in range(count)]
                continue
            columns = []
            for column in signature.columns:
                sizes: Sequence[int] = ()
                if column.nbytes is None:
                    sizes, at = words[at : at + count], at + count
                arrays, offset = _cut(payload, offset, column, count, sizes)
                name, datatype, shape = column.name, column.datatype, column.shape
                columns.append([make(name, datatype, shape, array) for array in arrays])
            rows += zip(*columns) if columns else [()] * count
    except (IndexError, ValueError) as error:
        raise ProtocolError(f"the tensors of a frame do not fit: {error}") from error
    return rows, wants


def _limit(count: int) -> None:
    if count > _MOST_ROWS:
        raise ValueError(f"{count} rows")


def _cut(
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
    return [np.ndarray((), column.dtype, payload, offset + size * index) for index in range(count)], stop
