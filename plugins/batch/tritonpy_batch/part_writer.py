"""Writes the rows of a shard to a local file, in each of the output formats.

Equal rows give equal bytes, however they arrive: row groups have a fixed number of rows, and
archives have no times.
"""

from __future__ import annotations

import shutil
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import msgspec
import numpy as np
import numpy.lib.format as npy
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tritonpy_batch.binding import leaf_type
from tritonpy_batch.options import InvalidJob
from tritonpy_batch.output_table import ATTEMPTS, ERROR

ROW_GROUP_ROWS = 1 << 16
Header = dict[str, Any] | None
"""The header of an array in a file, None for an array in memory."""
_ROW_GROUP_BYTES = 64 << 20


class PartWriter(ABC):
    """Writes record batches of one schema to `file`; the file is complete after `close`."""

    def __init__(self, file: Path, schema: pa.Schema) -> None:
        self._file = file
        self._schema = schema

    @abstractmethod
    def write(self, table: pa.RecordBatch) -> None:
        """Append rows."""

    @abstractmethod
    def close(self) -> None:
        """Finish the file."""

    def discard(self) -> None:
        """Close and delete what was written."""
        with suppress(OSError, pa.ArrowException):
            self.close()
        self._file.unlink(missing_ok=True)


class ParquetPart(PartWriter):
    """Parquet with zstd, in row groups of 65,536 rows or about 64 MiB."""

    def __init__(self, file: Path, schema: pa.Schema) -> None:
        super().__init__(file, schema)
        self._writer = pq.ParquetWriter(str(file), schema, compression="zstd")
        self._waiting: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0

    def write(self, table: pa.RecordBatch) -> None:
        """Append rows; a full row group is written."""
        self._waiting.append(table)
        self._rows += table.num_rows
        self._bytes += table.nbytes
        if self._rows >= ROW_GROUP_ROWS or self._bytes >= _ROW_GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._waiting:
            table = pa.Table.from_batches(self._waiting, self._schema)
            self._writer.write_table(table, row_group_size=max(table.num_rows, 1))
        self._waiting, self._rows, self._bytes = [], 0, 0

    def close(self) -> None:
        """Write the last row group and the footer."""
        self._flush()
        self._writer.close()


class JsonLinesPart(PartWriter):
    """One JSON object per row; `_error` and `_attempts` only where a row failed or was repeated."""

    def __init__(self, file: Path, schema: pa.Schema) -> None:
        super().__init__(file, schema)
        self._handle = file.open("wb")
        self._encode = msgspec.json.Encoder().encode

    def write(self, table: pa.RecordBatch) -> None:
        """Append lines."""
        lines = []
        for row in table.to_pylist():
            if row[ERROR] is None:
                del row[ERROR]
            if row[ATTEMPTS] == 1:
                del row[ATTEMPTS]
            lines.append(self._encode(row))
        self._handle.write(b"".join(line + b"\n" for line in lines))

    def close(self) -> None:
        """Close the file."""
        self._handle.close()


class LinesPart(PartWriter):
    """The only column, one line per row."""

    def __init__(self, file: Path, schema: pa.Schema) -> None:
        super().__init__(file, schema)
        self._handle = file.open("wb")

    def write(self, table: pa.RecordBatch) -> None:
        """Append lines."""
        self._handle.write("".join(f"{line}\n" for line in table.column(0).to_pylist()).encode())

    def close(self) -> None:
        """Close the file."""
        self._handle.close()


class NpzPart(PartWriter):
    """One array per column; rows that failed are zeros. Values wait in files beside the part."""

    def __init__(self, file: Path, schema: pa.Schema) -> None:
        super().__init__(file, schema)
        self._spools: dict[str, IO[bytes]] = {}
        self._texts: dict[str, list[Any]] = {}
        self._kinds: dict[str, tuple[np.dtype[Any], tuple[int, ...]]] = {}
        self._rows = 0
        for number, field in enumerate(schema):
            kind = array_type(field)
            if kind is None:
                self._texts[field.name] = []
            else:
                self._kinds[field.name] = kind
                spool = Path(f"{file}.{number}")
                self._spools[field.name] = spool.open("w+b")

    def write(self, table: pa.RecordBatch) -> None:
        """Append rows."""
        self._rows += table.num_rows
        for name, texts in self._texts.items():
            texts += ["" if each is None else each for each in table.column(name).to_pylist()]
        for name, spool in self._spools.items():
            dtype, dims = self._kinds[name]
            spool.write(_dense(table.column(name), dtype, dims).tobytes())

    def arrays(self) -> Iterator[tuple[str, Header, Any]]:
        """Yield name, header and content of each array."""
        for name, spool in self._spools.items():
            dtype, dims = self._kinds[name]
            spool.seek(0)
            yield name, {"descr": npy.dtype_to_descr(dtype), "fortran_order": False,
                         "shape": (self._rows, *dims)}, spool  # fmt: skip
        for name, texts in self._texts.items():
            yield name, None, np.array(texts, np.str_ if texts else "<U1")

    def close(self) -> None:
        """Write the archive."""
        try:
            with zipfile.ZipFile(self._file, "w") as archive:
                for name, header, content in self.arrays():
                    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                        _write_array(member, header, content)
        finally:
            self._remove_spools()

    def _remove_spools(self) -> None:
        for spool in self._spools.values():
            spool.close()
            Path(spool.name).unlink(missing_ok=True)


class NpyPart(NpzPart):
    """One array: the only output."""

    def __init__(self, file: Path, schema: pa.Schema) -> None:
        super().__init__(file, pa.schema([schema.field(0)]))

    def close(self) -> None:
        """Write the file."""
        try:
            with self._file.open("wb") as handle:
                for _, header, content in self.arrays():
                    _write_array(handle, header, content)
        finally:
            self._remove_spools()


WRITERS: dict[str, type[PartWriter]] = {
    "parquet": ParquetPart,
    "jsonl": JsonLinesPart,
    "npy": NpyPart,
    "npz": NpzPart,
}


def check_output_format(name: str, schema: pa.Schema, on_error: str) -> None:
    """Raise InvalidJob if a format cannot hold these columns."""
    if name == "jsonl":
        for field in schema:
            if "binary" in str(field.type):
                raise InvalidJob(f"column '{field.name}' has bytes, which JSON cannot hold")
    if name not in {"npy", "npz"}:
        return
    for field in schema:
        if array_type(field) is None and not pa.types.is_string(field.type):
            raise InvalidJob(
                f"column '{field.name}' is {field.type}, which no array holds: use "
                "--output-format parquet"
            )
    if name == "npy" and len(schema) != 3:
        raise InvalidJob("npy holds one output: choose it with --outputs, or use npz")
    if name == "npy" and on_error != "fail":
        raise InvalidJob("npy has no place for errors: use --on-error fail, or npz")


def array_type(field: pa.Field) -> tuple[np.dtype[Any], tuple[int, ...]] | None:
    """Return dtype and shape of the rows of a column of numbers, None for any other."""
    leaf, sizes = leaf_type(field.type)
    if min(sizes, default=0) < 0 or not (
        pa.types.is_integer(leaf) or pa.types.is_floating(leaf) or pa.types.is_boolean(leaf)
    ):
        return None
    return np.dtype(leaf.to_pandas_dtype()), sizes


def _dense(column: pa.Array, dtype: np.dtype[Any], dims: tuple[int, ...]) -> Any:
    """Return a column as an array [rows, *dims]; null rows are zeros."""
    rows = len(column)
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    inner = column
    for _ in dims:
        inner = inner.flatten()
    values = pc.fill_null(inner, False if pa.types.is_boolean(inner.type) else 0)
    values = values.to_numpy(zero_copy_only=False).astype(dtype, copy=False)
    if not dims or valid.all():
        return values.reshape(rows, *dims)
    array = np.zeros((rows, *dims), dtype)
    array[valid] = values.reshape(-1, *dims)
    return array


def _write_array(handle: IO[bytes], header: Header, content: Any) -> None:
    if header is None:
        npy.write_array(handle, content, version=(1, 0))
        return
    npy.write_array_header_1_0(handle, header)
    shutil.copyfileobj(content, handle, 1 << 20)
