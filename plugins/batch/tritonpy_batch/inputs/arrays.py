"""NPY and NPZ files: the first dimension counts rows."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from math import prod
from typing import IO, Any

import msgspec
import numpy as np
import numpy.lib.format as npy
import numpy.typing as npt
import pyarrow as pa

from tritonpy_batch.inputs.files import InputFile
from tritonpy_batch.inputs.input_format import InputFormat, Range
from tritonpy_batch.options import JobFailed
from tritonpy_batch.rows import RowSource, SourceRows

COLUMN = "data"
"""The name of the column of an NPY file."""
_KINDS = "biufSU"


class NpyHeader(msgspec.Struct, frozen=True):
    """Shape and type of an array, and where its data begins."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    offset: int

    @property
    def row_bytes(self) -> int:
        """The size of a row."""
        return max(self.dtype.itemsize * prod(self.shape[1:]), 1)


class NpyFormat(InputFormat):
    """NPY; a range counts rows."""

    def schema(self, file: InputFile) -> pa.Schema:
        """Return the only column, `data`."""
        with file.open() as handle:
            return pa.schema([_field(COLUMN, read_header(handle, file.url))])

    def split(self, file: InputFile, nbytes: int) -> list[Range]:
        """Cut a file between rows."""
        with file.open() as handle:
            header = read_header(handle, file.url)
        count, size = header.shape[0], max(nbytes // header.row_bytes, 1)
        return [
            (at, min(at + size, count), (min(at + size, count) - at) * header.row_bytes)
            for at in range(0, count, size)
        ]

    def count_rows(self, file: InputFile) -> int:
        """Return the first dimension."""
        with file.open() as handle:
            return read_header(handle, file.url).shape[0]

    def read(self, file: InputFile, start: int, stop: int) -> Iterator[SourceRows]:
        """Yield rows."""
        with file.open() as handle:
            header = read_header(handle, file.url)
            handle.seek(header.offset + start * header.row_bytes)
            size = max(self._block_bytes // header.row_bytes, 1)
            while start < stop:
                count = min(size, stop - start)
                array = _read_rows(handle, header, count, file.url)
                table = pa.RecordBatch.from_arrays([to_arrow(array)], [COLUMN])
                yield SourceRows(table, [(0, RowSource(file.url, start))])
                start += count


class NpzFormat(InputFormat):
    """NPZ: one column per array, all with the same number of rows; a file is one range."""

    def schema(self, file: InputFile) -> pa.Schema:
        """Return one column per array."""
        with file.open() as handle, zipfile.ZipFile(handle) as archive:
            fields = []
            for name in archive.namelist():
                with archive.open(name) as member:
                    fields.append(_field(_column(name), read_header(member, file.url)))
            return pa.schema(fields)

    def split(self, file: InputFile, nbytes: int) -> list[Range]:
        """Return the whole file."""
        return [(0, -1, max(file.size, 1))]

    def read(self, file: InputFile, start: int, stop: int) -> Iterator[SourceRows]:
        """Yield rows of all arrays together."""
        with file.open() as handle, zipfile.ZipFile(handle) as archive, ExitStack() as stack:
            wanted = None if self._selected is None else set(self._selected.names)
            members = {
                _column(name): stack.enter_context(archive.open(name))
                for name in archive.namelist()
                if wanted is None or _column(name) in wanted
            }
            headers = {name: read_header(each, file.url) for name, each in members.items()}
            counts = {header.shape[0] for header in headers.values()}
            if len(counts) != 1:
                raise JobFailed(f"{file.url}: the arrays have {sorted(counts)} rows")
            row_bytes = sum(header.row_bytes for header in headers.values())
            size, total = max(self._block_bytes // row_bytes, 1), counts.pop()
            for at in range(0, total, size):
                count = min(size, total - at)
                arrays = [
                    to_arrow(_read_rows(members[name], header, count, file.url))
                    for name, header in headers.items()
                ]
                table = pa.RecordBatch.from_arrays(arrays, list(headers))
                yield SourceRows(self._project(table, file), [(0, RowSource(file.url, at))])


def read_header(handle: IO[bytes], url: str) -> NpyHeader:
    """Read the header of an array (format: numpy.lib.format). Raises JobFailed."""
    try:
        version = npy.read_magic(handle)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, fortran, dtype = read(handle)
    except ValueError as error:
        raise JobFailed(f"{url} is no NPY file: {error}") from error
    if fortran and len(shape) > 1:
        raise JobFailed(f"{url} is in Fortran order: save it with np.ascontiguousarray")
    if dtype.kind not in _KINDS or not shape:
        raise JobFailed(
            f"{url} has dtype {dtype} and shape {shape}: expected rows of numbers or text"
        )
    return NpyHeader(shape, dtype, handle.tell())


def to_arrow(array: npt.NDArray[Any]) -> pa.Array:
    """Return an array [rows, ...] as a column of nested lists of fixed size, without a copy."""
    if array.dtype.kind in "SU":
        values = pa.array(array.ravel().tolist(), pa.binary() if array.dtype.kind == "S" else None)
    else:
        values = pa.array(np.ascontiguousarray(array, array.dtype.newbyteorder("=")).reshape(-1))
    for size in reversed(array.shape[1:]):
        values = pa.FixedSizeListArray.from_arrays(values, size)
    return values


def _field(name: str, header: NpyHeader) -> pa.Field:
    return pa.field(name, to_arrow(np.zeros((0, *header.shape[1:]), header.dtype)).type)


def _column(member: str) -> str:
    return member.removesuffix(".npy")


def _read_rows(handle: IO[bytes], header: NpyHeader, count: int, url: str) -> npt.NDArray[Any]:
    size = count * header.row_bytes
    content = handle.read(size)
    if len(content) != size:
        raise JobFailed(f"{url} ends after {len(content)} of {size} bytes of its last block")
    return np.frombuffer(content, header.dtype).reshape(count, *header.shape[1:])
