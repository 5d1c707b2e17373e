"""The interface of input formats."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import pyarrow as pa

from tritonpy_batch.inputs.files import InputFile
from tritonpy_batch.options import JobFailed
from tritonpy_batch.rows import SourceRows

Range = tuple[int, int, int]
"""Start, stop and size in bytes; the unit of start and stop is the format's own."""


class InputFormat(ABC):
    """Reads files of one format. `typed` is False if numbers in it have no declared type."""

    typed = True

    def __init__(self, block_bytes: int) -> None:
        self._block_bytes = block_bytes
        self._selected: pa.Schema | None = None

    def select(self, schema: pa.Schema) -> None:
        """Read only these columns; formats without types convert values to these types."""
        self._selected = schema

    @abstractmethod
    def schema(self, file: InputFile) -> pa.Schema:
        """Return the columns of a file."""

    @abstractmethod
    def split(self, file: InputFile, nbytes: int) -> list[Range]:
        """Cut a file into ranges of about `nbytes`."""

    def count_rows(self, file: InputFile) -> int | None:
        """Return the number of rows of a file if its header has it."""
        return None

    @abstractmethod
    def read(self, file: InputFile, start: int, stop: int) -> Iterator[SourceRows]:
        """Yield the rows of a range in parts of about the size of a block.

        Raises JobFailed if the file cannot be read.
        """

    def _project(self, table: pa.RecordBatch, file: InputFile) -> pa.RecordBatch:
        """Return the selected columns. Raises JobFailed if one is missing."""
        if self._selected is None:
            return table
        missing = set(self._selected.names) - set(table.schema.names)
        if missing:
            raise JobFailed(f"{file.url}: no column '{min(missing)}', which the first file has")
        return table.select(self._selected.names)
