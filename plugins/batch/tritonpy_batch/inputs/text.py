"""JSON Lines, CSV and lines of text, read from any byte of a file."""

from __future__ import annotations

import csv
import io
from abc import abstractmethod
from collections.abc import Iterator
from functools import partial
from typing import Any, BinaryIO

import msgspec
import pyarrow as pa
import pyarrow.csv
import pyarrow.json

from tritonpy_batch.inputs.files import InputFile
from tritonpy_batch.inputs.input_format import InputFormat, Range
from tritonpy_batch.options import JobFailed
from tritonpy_batch.rows import RowSource, SourceRows

TEXT = "text"
"""The column of lines of text."""
_SAMPLE_BYTES = 1 << 20


class RecordFormat(InputFormat):
    """Records that end with a newline; a range counts bytes.

    A record belongs to the range in which it begins. If `_quoted`, newlines between quotes belong
    to their record. A compressed file is one range.
    """

    typed = False
    _quoted = False

    def schema(self, file: InputFile) -> pa.Schema:
        """Return the columns, with types guessed from the first MiB."""
        with file.open() as handle:
            begin = self._header_bytes(file)
            block = next(_blocks(handle, begin, -1, _SAMPLE_BYTES, self._quoted), b"")
        if not block.strip():
            raise JobFailed(f"{file.url} has no rows")
        return self._infer(block, file)

    def split(self, file: InputFile, nbytes: int) -> list[Range]:
        """Cut a file; ranges end anywhere, except between quotes."""
        if file.size <= nbytes or file.compressed:
            return [(0, -1, max(file.size, 1))]
        ends = [*range(nbytes, file.size, nbytes), file.size]
        if self._quoted:
            with file.open() as handle:
                ends = _record_ends(handle, ends)
        starts = [0, *ends[:-1]]
        return [
            (start, end, end - start)
            for start, end in zip(starts, ends, strict=True)
            if end > start
        ]

    def read(self, file: InputFile, start: int, stop: int) -> Iterator[SourceRows]:
        """Yield records; those that cannot be parsed are rows with an error."""
        done = 0
        with file.open() as handle:
            begin = max(start, self._header_bytes(file))
            for block in _blocks(handle, begin, stop, self._block_bytes, self._quoted):
                rows = self._parse(block, file)
                if not len(rows):
                    continue
                # counted from the start of the file only if an error needs it
                first = done if start == 0 else partial(self._row_number, file, start, done)
                rows.sources = [(0, RowSource(file.url, first))]
                yield rows
                done += len(rows)

    def _row_number(self, file: InputFile, start: int, done: int) -> int:
        """Return the number of records that begin before `start`, and `done` more."""
        begin = self._header_bytes(file)
        with file.open() as handle:
            blocks = _blocks(handle, begin, start, self._block_bytes, self._quoted)
            return done + sum(map(self._count_records, blocks))

    def _header_bytes(self, file: InputFile) -> int:
        return 0

    @abstractmethod
    def _infer(self, block: bytes, file: InputFile) -> pa.Schema:
        """Return the columns of complete records."""

    @abstractmethod
    def _parse(self, block: bytes, file: InputFile) -> SourceRows:
        """Return the rows of complete records, without their sources."""

    @abstractmethod
    def _count_records(self, block: bytes) -> int:
        """Return the number of records of a block."""


class LinesFormat(RecordFormat):
    """Lines of text; the only column is `text`. Empty lines are no rows."""

    def _infer(self, block: bytes, file: InputFile) -> pa.Schema:
        return pa.schema([(TEXT, pa.string())])

    def _parse(self, block: bytes, file: InputFile) -> SourceRows:
        errors: dict[int, str] = {}
        texts: list[str | None] = []
        for line in _lines(block):
            try:
                texts.append(line.decode())
            except UnicodeDecodeError as error:
                errors[len(texts)] = f"no UTF-8: {error}"
                texts.append(None)
        return SourceRows(
            pa.RecordBatch.from_arrays([pa.array(texts, pa.string())], [TEXT]), [], errors
        )

    def _count_records(self, block: bytes) -> int:
        return len(_lines(block))


class JsonLinesFormat(RecordFormat):
    """One JSON object per line. Empty lines are no rows."""

    def _infer(self, block: bytes, file: InputFile) -> pa.Schema:
        try:
            return _read_json(b"\n".join(_lines(block)), None).schema
        except pa.ArrowInvalid as error:
            raise JobFailed(f"{file.url}: the first lines are no JSON objects: {error}") from error

    def _parse(self, block: bytes, file: InputFile) -> SourceRows:
        lines = _lines(block)
        schema = self._selected
        try:
            table = _read_json(b"\n".join(lines), schema) if lines else None
        except pa.ArrowInvalid:
            table = None
        if table is not None and table.num_rows == len(lines):
            return SourceRows(table, [])
        return self._parse_each(lines, schema or self._infer(block, file))

    def _parse_each(self, lines: list[bytes], schema: pa.Schema) -> SourceRows:
        """Return the rows of lines, of which some are invalid."""
        errors: dict[int, str] = {}
        columns: list[list[Any]] = [[] for _ in schema]
        for at, line in enumerate(lines):
            values: list[Any] = [None] * len(schema)
            try:
                document = msgspec.json.decode(line, type=dict[str, Any])
                values = [_fitting(document.get(field.name), field) for field in schema]
            except (msgspec.MsgspecError, UnicodeDecodeError, pa.ArrowException) as error:
                errors[at] = str(error)
            for column, value in zip(columns, values, strict=True):
                column.append(value)
        arrays = [
            pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)
        ]
        return SourceRows(pa.RecordBatch.from_arrays(arrays, schema=schema), [], errors)

    def _count_records(self, block: bytes) -> int:
        return len(_lines(block))


class CsvFormat(RecordFormat):
    """CSV with a header line (RFC 4180)."""

    _quoted = True
    _delimiter = ","

    def __init__(self, block_bytes: int) -> None:
        super().__init__(block_bytes)
        self._headers: dict[str, bytes] = {}

    def _header_bytes(self, file: InputFile) -> int:
        return len(self._header(file))

    def _header(self, file: InputFile) -> bytes:
        if file.url not in self._headers:
            with file.open() as handle:
                self._headers[file.url] = handle.readline(_SAMPLE_BYTES)
        return self._headers[file.url]

    def _names(self, file: InputFile) -> list[str]:
        header = self._header(file).decode("utf-8-sig", "replace")
        return next(csv.reader([header], delimiter=self._delimiter), [])

    def _infer(self, block: bytes, file: InputFile) -> pa.Schema:
        names = self._names(file)
        try:
            return self._read_csv(block, names, pa.csv.ConvertOptions()).schema
        except pa.ArrowInvalid as error:
            raise JobFailed(f"{file.url}: the first rows are no CSV: {error}") from error

    def _parse(self, block: bytes, file: InputFile) -> SourceRows:
        names = self._names(file)
        schema = self._selected or self._infer(block, file)
        missing = set(schema.names) - set(names)
        if missing:
            raise JobFailed(f"{file.url}: no column '{min(missing)}', which the first file has")
        options = pa.csv.ConvertOptions(column_types=schema, include_columns=schema.names)
        try:
            table = self._read_csv(block, names, options)
        except pa.ArrowInvalid:
            return self._parse_each(block, names, schema)
        return SourceRows(table, [])

    def _read_csv(
        self, block: bytes, names: list[str], options: pa.csv.ConvertOptions
    ) -> pa.RecordBatch:
        table = pa.csv.read_csv(
            pa.py_buffer(block),
            pa.csv.ReadOptions(use_threads=False, column_names=names, block_size=len(block) + 1),
            pa.csv.ParseOptions(delimiter=self._delimiter, newlines_in_values=True),
            options,
        )
        return _one_batch(table)

    def _parse_each(self, block: bytes, names: list[str], schema: pa.Schema) -> SourceRows:
        """Return the rows of records, of which some are invalid."""
        errors: dict[int, str] = {}
        columns: list[list[Any]] = [[] for _ in schema]
        for at, record in enumerate(self._records(block)):
            values: list[Any] = [None] * len(schema)
            try:
                values = _parsed_record(record, names, schema)
            except pa.ArrowInvalid as error:
                errors[at] = str(error)
            for column, value in zip(columns, values, strict=True):
                column.append(value)
        arrays = [
            pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)
        ]
        return SourceRows(pa.RecordBatch.from_arrays(arrays, schema=schema), [], errors)

    def _records(self, block: bytes) -> Iterator[list[str]]:
        text = io.StringIO(block.decode("utf-8", "replace"), newline="")
        return (record for record in csv.reader(text, delimiter=self._delimiter) if record)

    def _count_records(self, block: bytes) -> int:
        return sum(1 for _ in self._records(block))


class TsvFormat(CsvFormat):
    """CSV with tabs instead of commas."""

    _delimiter = "\t"


def _blocks(handle: BinaryIO, start: int, stop: int, size: int, quoted: bool) -> Iterator[bytes]:
    """Yield blocks of complete records that begin in [start, stop); stop -1 is the end."""
    at = start
    if start and handle.seekable():
        # a record that began before `start` belongs to the range before
        handle.seek(start if quoted else start - 1)
        at += 0 if quoted else len(handle.readline()) - 1
    elif start:
        handle.read(start)
    rest = b""
    while stop < 0 or at < stop:
        content = handle.read(size)
        block = rest + content
        if not content:
            if block:
                yield block
            return
        length = _complete(block, quoted)
        if 0 <= stop <= at + length:
            # the last record begins before `stop`; between quotes, ranges end with a record
            yield block[: stop - at if quoted else block.find(b"\n", stop - at - 1) + 1]
            return
        if length:
            yield block[:length]
        at, rest = at + length, block[length:]


def _complete(block: bytes, quoted: bool) -> int:
    """Return the length of the complete records at the start of a block."""
    end = block.rfind(b"\n") + 1
    while quoted and end and block.count(b'"', 0, end) % 2:
        end = block.rfind(b"\n", 0, end - 1) + 1
    return end


def _record_ends(handle: BinaryIO, targets: list[int]) -> list[int]:
    """Return the first end of a record at or after each byte of `targets`, in one pass."""
    ends: list[int] = []
    at = quotes = 0
    pending = iter(targets)
    target = next(pending)
    while content := handle.read(_SAMPLE_BYTES):
        position = 0
        while target <= at + len(content):
            end = content.find(b"\n", max(position, target - at - 1, 0)) + 1
            if not end:
                break
            quotes += content.count(b'"', position, end)
            position = end
            if quotes % 2 == 0:
                ends.append(at + end)
                target = next((each for each in pending if each > at + end), -1)
                if target < 0:
                    return ends
        quotes += content.count(b'"', position)
        at += len(content)
    return [*ends, at] if not ends or ends[-1] < at else ends


def _lines(block: bytes) -> list[bytes]:
    return [line.rstrip(b"\r") for line in block.split(b"\n") if line.strip()]


def _read_json(block: bytes, schema: pa.Schema | None) -> pa.RecordBatch:
    table = pa.json.read_json(
        pa.py_buffer(block),
        pa.json.ReadOptions(use_threads=False, block_size=len(block) + 1),
        pa.json.ParseOptions(
            explicit_schema=schema,
            unexpected_field_behavior="infer" if schema is None else "ignore",
        ),
    )
    return _one_batch(table)


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)


def _fitting(value: Any, field: pa.Field) -> Any:
    """Return a value that its column can hold. Raises ArrowException with the column's name."""
    try:
        pa.array([value], field.type)
    except (pa.ArrowException, OverflowError) as error:
        raise pa.ArrowInvalid(f"column '{field.name}': {error}") from error
    return value


def _parsed_record(record: list[str], names: list[str], schema: pa.Schema) -> list[Any]:
    """Return the values of a CSV record in the order of `schema`. Raises ArrowInvalid."""
    if len(record) != len(names):
        raise pa.ArrowInvalid(f"{len(record)} values, the header has {len(names)}")
    named = dict(zip(names, record, strict=True))
    return [_parsed_text(named[field.name], field) for field in schema]


def _parsed_text(text: str, field: pa.Field) -> Any:
    """Return the value of a CSV cell; an empty one of a type other than text is null."""
    if pa.types.is_string(field.type):
        return text
    try:
        return pa.array([text or None]).cast(field.type)[0].as_py()
    except pa.ArrowException as error:
        raise pa.ArrowInvalid(f"column '{field.name}': {error}") from error
