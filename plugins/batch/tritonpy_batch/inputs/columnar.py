"""Parquet and Arrow files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq

from tritonpy_batch.inputs.files import InputFile
from tritonpy_batch.inputs.input_format import InputFormat, Range
from tritonpy_batch.options import JobFailed
from tritonpy_batch.rows import RowSource, SourceRows

_MAX_BLOCK_ROWS = 1 << 16
_BUFFER_BYTES = 1 << 20


class ParquetFormat(InputFormat):
    """Parquet; a range counts row groups."""

    def schema(self, file: InputFile) -> pa.Schema:
        """Return the columns of a file."""
        with self._open(file) as parquet:
            return parquet.schema_arrow

    def split(self, file: InputFile, nbytes: int) -> list[Range]:
        """Cut a file between row groups."""
        with self._open(file) as parquet:
            metadata = parquet.metadata
            return [
                (group, group + 1, max(metadata.row_group(group).total_byte_size, 1))
                for group in range(metadata.num_row_groups)
            ]

    def count_rows(self, file: InputFile) -> int:
        """Return the number of rows of a file."""
        with self._open(file) as parquet:
            return int(parquet.metadata.num_rows)

    def read(self, file: InputFile, start: int, stop: int) -> Iterator[SourceRows]:
        """Yield the rows of row groups."""
        with self._open(file) as parquet:
            metadata = parquet.metadata
            first = sum(metadata.row_group(group).num_rows for group in range(start))
            nbytes = sum(metadata.row_group(group).total_byte_size for group in range(start, stop))
            count = sum(metadata.row_group(group).num_rows for group in range(start, stop))
            size = self._block_bytes * count // max(nbytes, 1)
            names = None if self._selected is None else self._selected.names
            batches = parquet.iter_batches(
                min(max(size, 1), _MAX_BLOCK_ROWS), list(range(start, stop)), names
            )
            try:
                for batch in batches:
                    yield SourceRows(self._project(batch, file), [(0, RowSource(file.url, first))])
                    first += batch.num_rows
            except (pa.ArrowException, OSError) as error:
                raise JobFailed(f"{file.url}: row groups {start} to {stop - 1}: {error}") from error

    @contextmanager
    def _open(self, file: InputFile) -> Iterator[pq.ParquetFile]:
        with file.open() as handle:
            try:
                # pages are read as they are needed, not whole row groups
                parquet = pq.ParquetFile(handle, buffer_size=_BUFFER_BYTES, pre_buffer=False)
            except (pa.ArrowException, OSError) as error:
                raise JobFailed(f"{file.url} is no Parquet file: {error}") from error
            with parquet:
                yield parquet


class ArrowFormat(InputFormat):
    """Arrow IPC, as a file or a stream; a range counts record batches."""

    def schema(self, file: InputFile) -> pa.Schema:
        """Return the columns of a file."""
        with self._open(file) as opened:
            return opened.schema

    def split(self, file: InputFile, nbytes: int) -> list[Range]:
        """Cut a file between record batches; a stream is one range."""
        with self._open(file) as opened:
            if not isinstance(opened, pa.RecordBatchFileReader):
                return [(0, -1, file.size)]
            count = opened.num_record_batches
        return [(at, at + 1, max(file.size // count, 1)) for at in range(count)]

    def read(self, file: InputFile, start: int, stop: int) -> Iterator[SourceRows]:
        """Yield the rows of record batches."""
        with self._open(file) as opened:
            first = 0
            try:
                if isinstance(opened, pa.RecordBatchFileReader):
                    first = sum(opened.get_batch(at).num_rows for at in range(start))
                    batches = (opened.get_batch(at) for at in range(start, stop))
                else:
                    batches = iter(opened)
                for batch in batches:
                    for at in range(0, batch.num_rows, _MAX_BLOCK_ROWS):
                        part = self._project(batch.slice(at, _MAX_BLOCK_ROWS), file)
                        yield SourceRows(part, [(0, RowSource(file.url, first + at))])
                    first += batch.num_rows
            except (pa.ArrowException, OSError) as error:
                raise JobFailed(f"{file.url}: {error}") from error

    @contextmanager
    def _open(
        self, file: InputFile
    ) -> Iterator[pa.RecordBatchFileReader | pa.RecordBatchStreamReader]:
        with file.open() as handle:
            try:
                opened = pa.ipc.open_file(handle)
            except (pa.ArrowException, OSError):
                try:
                    handle.seek(0)
                    opened = pa.ipc.open_stream(handle)
                except (pa.ArrowException, OSError) as error:
                    raise JobFailed(f"{file.url} has no Arrow data: {error}") from error
            with opened:
                yield opened
