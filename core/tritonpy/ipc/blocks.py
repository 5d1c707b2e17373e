"""Rows of tensors that are left as they arrived or were computed, parts of a block, until somebody wants to see one of them.

Who only passes rows on pays for none of their tensors: `pack` copies neighbours in a block together, `gather` makes one tensor of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from .frame import aligned
from .signatures import Signature, Wants


class Rows(ABC):
    """`count` rows of one signature without texts; `make` makes a tensor of its name, data type, shape and array."""

    __slots__ = ("_derived", "_make", "count", "signature")

    def __init__(self, signature: Signature, count: int, make: Callable[..., Any]) -> None:
        self.signature = signature
        self.count = count
        self._make = make
        self._derived: tuple[Any, Any] | None = None  # a question and its answer

    @abstractmethod
    def row(self, place: int) -> tuple[Any, ...]:
        """Return the tensors of one row, as views."""

    @abstractmethod
    def arrays(self, first: int, stop: int) -> list[np.ndarray]:
        """Return so many rows, an array for each column, in which they lie one below the other."""

    @abstractmethod
    def parts(self, first: int, stop: int) -> list[np.ndarray]:
        """Return the bytes of so many rows, column by column."""

    def derived(self, derive: Callable[..., Any], *arguments: Any) -> Any:
        """Return what `derive(rows, *arguments)` is, asked once for the same: who wants something of each row makes it of all of them together."""
        derived, question = self._derived, (derive, arguments)
        if derived is None or derived[0] != question:
            derived = self._derived = (question, derive(self, *arguments))
        return derived[1]

    def tensors(self, first: int, stop: int) -> list[Any]:
        """Return so many rows, which have a batch dimension, as one tensor for each column."""
        return [
            self._make(column.name, column.datatype, array.shape, array)
            for column, array in zip(self.signature.columns, self.arrays(first, stop))
        ]


class Block(Rows):
    """Rows that lie in `payload` from `offset` on.

    Raises ValueError where the payload ends before them. `end` is where the next block begins.
    """

    __slots__ = ("_starts", "end", "payload")

    def __init__(
        self, signature: Signature, count: int, payload: np.ndarray, offset: int, make: Callable[..., Any]
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

    def row(self, place: int) -> tuple[Any, ...]:
        tensors = []
        for column, start in zip(self.signature.columns, self._starts):
            data: Any = np.ndarray(column.shape, column.dtype, self.payload, start + place * (column.nbytes or 0))
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
    """Rows of arrays that were computed together: one contiguous array for each column, with a batch dimension."""

    __slots__ = ("_whole",)

    def __init__(self, signature: Signature, count: int, arrays: list[np.ndarray], make: Callable[..., Any]) -> None:
        super().__init__(signature, count, make)
        self._whole = arrays

    def row(self, place: int) -> tuple[Any, ...]:
        arrays = self.arrays(place, place + 1)
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


class Placed:
    """One row of a block, and its tensors once they were asked for."""

    __slots__ = ("_tensors", "block", "place")

    def __init__(self, block: Rows, place: int) -> None:
        self.block = block
        self.place = place
        self._tensors: tuple[Any, ...] | None = None

    def tensors(self) -> tuple[Any, ...]:
        """Return the tensors; the same objects each time, but for threads that ask at the same moment."""
        if self._tensors is None:
            self._tensors = self.block.row(self.place)
        return self._tensors


class PlacedRow(Placed, Sequence[Any]):
    """The row as what it is in a frame."""

    __slots__ = ()

    def __len__(self) -> int:
        return len(self.block.signature.columns)

    def __getitem__(self, at: Any) -> Any:
        return self.tensors()[at]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tensors())


class PlacedInputs(Placed, Mapping[str, Any]):
    """The row as the inputs of a request, by their names."""

    __slots__ = ()

    def __len__(self) -> int:
        return len(self.block.signature.columns)

    def __getitem__(self, name: str) -> Any:
        return self.tensors()[self.block.signature.places[name]]

    def __iter__(self) -> Iterator[str]:
        return iter(self.block.signature.places)


def stretches(rows: Sequence[Any]) -> list[tuple[Rows, int, int]] | None:
    """Return the blocks that the rows lie in, and from which place to which; None where some are not placed, or not alike."""
    found: list[tuple[Rows, int, int]] = []
    block, first, stop = None, 0, 0
    for row in rows:
        if not isinstance(row, Placed):
            return None
        if row.block is block and row.place == stop:
            stop += 1
            continue
        if block is not None:
            if row.block.signature.key != block.signature.key:
                return None
            found.append((block, first, stop))
        block, first, stop = row.block, row.place, row.place + 1
    if block is not None:
        found.append((block, first, stop))
    return found


def neighbours(rows: Sequence[Any], wants: Sequence[Wants], start: int) -> tuple[int, list[list[np.ndarray]]]:
    """Return where the rows end that are alike and placed, from the placed one at `start` on, and the bytes of each column of theirs."""
    signature, wanted = rows[start].block.signature, wants[start]
    columns: list[list[np.ndarray]] = [[] for _ in signature.columns]
    count = len(rows)
    stop = start
    while stop < count and isinstance(rows[stop], Placed) and wants[stop] == wanted:
        block, first = rows[stop].block, rows[stop].place
        if block.signature is not signature and block.signature.key != signature.key:
            break
        begin, stop = stop, _end_of_run(rows, wants, stop)
        for column, part in zip(columns, block.parts(first, first + stop - begin)):
            column.append(part)
    return stop, columns


def _end_of_run(rows: Sequence[Any], wants: Sequence[Wants], start: int) -> int:
    """Return where the rows end that follow each other in the block of the one at `start`."""
    block, place, wanted = rows[start].block, rows[start].place, wants[start]
    stop = start + 1
    for row in rows[start + 1 :]:
        place += 1
        if not isinstance(row, Placed) or row.block is not block or row.place != place or wants[stop] != wanted:
            break
        stop += 1
    return stop
