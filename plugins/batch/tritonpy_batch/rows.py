"""Rows on their way from a file to the model: Arrow columns with the place of each row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec
import pyarrow as pa


class RowSource(msgspec.Struct, frozen=True):
    """The place of consecutive rows: `name` of the file, and the number of the first row, from 0.

    Formats that are read from the middle of a file count rows only if an error needs the number:
    then `first_row` is a function.
    """

    name: str
    first_row: int | Callable[[], int] = 0

    def row(self, index: int) -> int:
        """Return the number of a row in its file, from 1."""
        first = self.first_row if isinstance(self.first_row, int) else self.first_row()
        return first + index + 1


class SourceRows(msgspec.Struct):
    """Rows of a shard: `table`, the sources of its parts as (first index, source), and bad rows.

    `errors` maps indexes of rows that could not be read to what is wrong; their columns are null.
    """

    table: pa.RecordBatch
    sources: list[tuple[int, RowSource]]
    errors: Mapping[int, str] = {}

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def place(self, index: int) -> str:
        """Return where a row comes from: `FILE, row N`."""
        first, source = next(each for each in reversed(self.sources) if each[0] <= index)
        return f"{source.name}, row {source.row(index - first)}"


def regroup(parts: Iterable[SourceRows], size: int) -> Iterator[SourceRows]:
    """Yield the same rows in groups of `size`; the last group may be smaller.

    Full groups of one part are slices without a copy.
    """
    waiting: list[SourceRows] = []
    count = 0
    for part in parts:
        start = 0
        while count + len(part) - start >= size:
            taken = size - count
            waiting.append(_slice(part, start, taken))
            yield _joined(waiting)
            waiting, count = [], 0
            start += taken
        if start < len(part):
            waiting.append(_slice(part, start, len(part) - start))
            count += len(part) - start
    if waiting:
        yield _joined(waiting)


def _slice(rows: SourceRows, start: int, count: int) -> SourceRows:
    if start == 0 and count == len(rows):
        return rows
    stop = start + count
    sources = []
    ends = [first for first, _ in rows.sources[1:]] + [len(rows)]
    for (first, source), end in zip(rows.sources, ends, strict=True):
        if end <= start or first >= stop:
            continue
        skipped = max(start - first, 0)
        sources.append((max(first - start, 0), _advanced(source, skipped)))
    errors = {at - start: text for at, text in rows.errors.items() if start <= at < stop}
    return SourceRows(rows.table.slice(start, count), sources, errors)


def _advanced(source: RowSource, skipped: int) -> RowSource:
    first = source.first_row
    if not skipped:
        return source
    if isinstance(first, int):
        return RowSource(source.name, first + skipped)
    return RowSource(source.name, lambda: first() + skipped)


def _joined(parts: list[SourceRows]) -> SourceRows:
    if len(parts) == 1:
        return parts[0]
    table = pa.concat_batches([part.table for part in parts])
    sources: list[tuple[int, RowSource]] = []
    errors: dict[int, str] = {}
    start = 0
    for part in parts:
        sources += [(first + start, source) for first, source in part.sources]
        errors |= {at + start: text for at, text in part.errors.items()}
        start += len(part)
    return SourceRows(table, sources, errors)
