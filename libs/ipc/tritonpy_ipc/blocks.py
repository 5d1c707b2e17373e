"""Rows of tensors that stay in the block in which they arrived or were computed.

A component that only forwards rows never creates their tensors: `pack` copies consecutive rows of a
block at once, and `gather` makes one tensor of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from .frame import aligned
from .signatures import RequestedOutputs, TensorSignature


class Rows(ABC):
    """`count` rows of one signature without BYTES tensors.

    `make(name, datatype, shape, array)` creates a tensor.
    """

    __slots__ = ("_derived", "_make", "count", "signature")

    def __init__(self, signature: TensorSignature, count: int, make: Callable[..., Any]) -> None:
        self.signature = signature
        self.count = count
        self._make = make
        self._derived: tuple[Any, Any] | None = None  # the last key and its result

    @abstractmethod
    def row(self, position: int) -> tuple[Any, ...]:
        """Return the tensors of one row as views."""

    @abstractmethod
    def arrays(self, first: int, stop: int) -> list[np.ndarray]:
        """Return the given rows as one array per column, stacked along the first axis."""

    @abstractmethod
    def parts(self, first: int, stop: int) -> list[np.ndarray]:
        """Return the bytes of the given rows, column by column."""

    def derived(self, derive: Callable[..., Any], *arguments: Any) -> Any:
        """Return `derive(rows, *arguments)`, cached for repeated calls with equal arguments.

        Use it to get a value for each row: `derive` computes the values of all rows at once.
        """
        derived, question = self._derived, (derive, arguments)
        if derived is None or derived[0] != question:
            derived = self._derived = (question, derive(self, *arguments))
        return derived[1]

    def tensors(self, first: int, stop: int) -> list[Any]:
        """Return the given rows, which have a batch dimension, as one tensor per column."""
        return [
            self._make(column.name, column.datatype, array.shape, array)
            for column, array in zip(self.signature.columns, self.arrays(first, stop))
        ]


class Block(Rows):
    """Rows stored in `payload` from `offset` on.

    `end` is the offset of the next block. Raises `ValueError` if the payload is too short.
    """

    __slots__ = ("_starts", "end", "payload")

    def __init__(
        self,
        signature: TensorSignature,
        count: int,
        payload: np.ndarray,
        offset: int,
        make: Callable[..., Any],
    ) -> None:
        super().__init__(signature, count, make)
        self.payload = payload
        self._starts = []
        for column in signature.columns:
            self._starts.append(offset)
            offset = aligned(offset + (column.nbytes or 0) * count)
        if offset > payload.size:
            raise ValueError("numbers beyond the end")
        self.end = offset

    def row(self, position: int) -> tuple[Any, ...]:
        tensors = []
        for column, start in zip(self.signature.columns, self._starts):
            data: Any = np.ndarray(
                column.shape, column.dtype, self.payload, start + position * (column.nbytes or 0)
            )
            tensors.append(self._make(column.name, column.datatype, column.shape, data))
        return tuple(tensors)

    def arrays(self, first: int, stop: int) -> list[np.ndarray]:
        return [
            np.ndarray(
                ((stop - first) * column.shape[0], *column.shape[1:]),
                column.dtype,
                self.payload,
                start + first * (column.nbytes or 0),
            )
            for column, start in zip(self.signature.columns, self._starts)
        ]

    def parts(self, first: int, stop: int) -> list[np.ndarray]:
        columns = zip(self.signature.columns, self._starts)
        return [
            self.payload[start + first * (column.nbytes or 0) : start + stop * (column.nbytes or 0)]
            for column, start in columns
        ]


class Stack(Rows):
    """Rows computed together: one contiguous array with a batch dimension per column."""

    __slots__ = ("_whole",)

    def __init__(
        self,
        signature: TensorSignature,
        count: int,
        arrays: list[np.ndarray],
        make: Callable[..., Any],
    ) -> None:
        super().__init__(signature, count, make)
        self._whole = arrays

    def row(self, position: int) -> tuple[Any, ...]:
        arrays = self.arrays(position, position + 1)
        return tuple(
            [
                self._make(column.name, column.datatype, column.shape, array)
                for column, array in zip(self.signature.columns, arrays)
            ]
        )

    def arrays(self, first: int, stop: int) -> list[np.ndarray]:
        if stop - first == self.count:
            return self._whole
        return [
            array[first * column.shape[0] : stop * column.shape[0]]
            for column, array in zip(self.signature.columns, self._whole)
        ]

    def parts(self, first: int, stop: int) -> list[np.ndarray]:
        return [array.reshape(-1).view(np.uint8) for array in self.arrays(first, stop)]


class BlockView:
    """One row of a block, and its tensors once they have been created."""

    __slots__ = ("_tensors", "block", "position")

    def __init__(self, block: Rows, position: int) -> None:
        self.block = block
        self.position = position
        self._tensors: tuple[Any, ...] | None = None

    def tensors(self) -> tuple[Any, ...]:
        """Return the tensors.

        Returns the same objects on each call, except to threads that call it for the first time at
        the same moment.
        """
        if self._tensors is None:
            self._tensors = self.block.row(self.position)
        return self._tensors


class BlockRow(BlockView, Sequence[Any]):
    """A row of a block as a sequence of tensors, as frames use it."""

    __slots__ = ()

    def __len__(self) -> int:
        return len(self.block.signature.columns)

    def __getitem__(self, at: Any) -> Any:
        return self.tensors()[at]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tensors())


class BlockInputs(BlockView, Mapping[str, Any]):
    """A row of a block as the inputs of a request: tensors by name."""

    __slots__ = ()

    def __len__(self) -> int:
        return len(self.block.signature.columns)

    def __getitem__(self, name: str) -> Any:
        return self.tensors()[self.block.signature.positions[name]]

    def __iter__(self) -> Iterator[str]:
        return iter(self.block.signature.positions)


def block_ranges(rows: Sequence[Any]) -> list[tuple[Rows, int, int]] | None:
    """Return the ranges `(block, first, stop)` that the rows cover.

    Returns None if a row is not in a block or if the signatures differ.
    """
    found: list[tuple[Rows, int, int]] = []
    block, first, stop = None, 0, 0
    for row in rows:
        if not isinstance(row, BlockView):
            return None
        if row.block is block and row.position == stop:
            stop += 1
            continue
        if block is not None:
            if row.block.signature.key != block.signature.key:
                return None
            found.append((block, first, stop))
        block, first, stop = row.block, row.position, row.position + 1
    if block is not None:
        found.append((block, first, stop))
    return found


def row_group(
    rows: Sequence[Any], requested: Sequence[RequestedOutputs], start: int
) -> tuple[int, list[list[np.ndarray]]]:
    """Return the end of the group of block rows that begins at `start`, and its bytes by column.

    The rows of a group have the same signature and the same requested outputs.
    """
    signature, outputs = rows[start].block.signature, requested[start]
    columns: list[list[np.ndarray]] = [[] for _ in signature.columns]
    count = len(rows)
    stop = start
    while stop < count and isinstance(rows[stop], BlockView) and requested[stop] == outputs:
        block, first = rows[stop].block, rows[stop].position
        if block.signature is not signature and block.signature.key != signature.key:
            break
        begin, stop = stop, _end_of_run(rows, requested, stop)
        for column, part in zip(columns, block.parts(first, first + stop - begin)):
            column.append(part)
    return stop, columns


def _end_of_run(rows: Sequence[Any], requested: Sequence[RequestedOutputs], start: int) -> int:
    """Return the end of the consecutive block rows from `start` with the same outputs."""
    block, position, outputs = rows[start].block, rows[start].position, requested[start]
    stop = start + 1
    for row in rows[start + 1 :]:
        position += 1
        if (
            not isinstance(row, BlockView)
            or row.block is not block
            or row.position != position
            or requested[stop] != outputs
        ):
            break
        stop += 1
    return stop
