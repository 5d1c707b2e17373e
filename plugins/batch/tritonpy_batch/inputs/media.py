"""Folders of images, and WebDataset archives."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from tritonpy_batch.inputs.files import InputFile
from tritonpy_batch.inputs.input_format import InputFormat, Range
from tritonpy_batch.options import JobFailed
from tritonpy_batch.rows import RowSource, SourceRows

PATH, IMAGE, KEY = "path", "image", "__key__"
_NUMBERS = {"cls", "index", "id"}
_TEXTS = {"txt", "text", "json", "caption", "transcript"}


class ImageFormat(InputFormat):
    """One image per file: its path, and the encoded bytes."""

    def schema(self, file: InputFile) -> pa.Schema:
        """Return the columns `path` and `image`."""
        return pa.schema([(PATH, pa.string()), (IMAGE, pa.binary())])

    def split(self, file: InputFile, nbytes: int) -> list[Range]:
        """Return the whole file."""
        return [(0, 1, max(file.size, 1))]

    def read(self, file: InputFile, start: int, stop: int) -> Iterator[SourceRows]:
        """Yield the only row."""
        with file.open() as handle:
            content = handle.read()
        table = pa.RecordBatch.from_arrays(
            [pa.array([file.url]), pa.array([content], pa.binary())], [PATH, IMAGE]
        )
        yield SourceRows(self._project(table, file), [(0, RowSource(file.url))])


class WebDatasetFormat(InputFormat):
    """Archives whose members `KEY.EXTENSION` are columns, named by their extension.

    Format: github.com/webdataset/webdataset. An archive is one range.
    """

    def schema(self, file: InputFile) -> pa.Schema:
        """Return the columns of the first sample."""
        for sample in _samples(file):
            return pa.schema([(name, _type_of(name)) for name in sample])
        raise JobFailed(f"{file.url} has no sample")

    def split(self, file: InputFile, nbytes: int) -> list[Range]:
        """Return the whole archive."""
        return [(0, -1, max(file.size, 1))]

    def read(self, file: InputFile, start: int, stop: int) -> Iterator[SourceRows]:
        """Yield samples in the order of the archive; a missing member is null."""
        schema = self._selected or self.schema(file)
        waiting: list[dict[str, Any]] = []
        size = first = 0
        for sample in _samples(file):
            waiting.append(sample)
            size += sum(map(len, sample.values()))
            if size >= self._block_bytes:
                yield self._rows(waiting, schema, file, first)
                first += len(waiting)
                waiting, size = [], 0
        if waiting:
            yield self._rows(waiting, schema, file, first)

    def _rows(
        self, samples: list[dict[str, Any]], schema: pa.Schema, file: InputFile, first: int
    ) -> SourceRows:
        errors: dict[int, str] = {}
        columns: dict[str, list[Any]] = {name: [] for name in schema.names}
        for at, sample in enumerate(samples):
            for name, column in columns.items():
                try:
                    column.append(_value(name, sample.get(name)))
                except ValueError:
                    errors[at] = f"member '{name}' of sample '{sample[KEY]}' is invalid"
                    column.append(None)
        arrays = [pa.array(columns[field.name], field.type) for field in schema]
        table = pa.RecordBatch.from_arrays(arrays, schema=schema)
        return SourceRows(table, [(0, RowSource(file.url, first))], errors)


def _samples(file: InputFile) -> Iterator[dict[str, Any]]:
    sample: dict[str, Any] = {}
    try:
        with file.open() as handle, tarfile.open(fileobj=handle, mode="r|*") as archive:
            for member in archive:
                content = archive.extractfile(member)
                folder, slash, base = member.name.rpartition("/")
                stem, _, extension = base.partition(".")
                if content is None or not stem or not extension:
                    continue
                key = f"{folder}{slash}{stem}"
                if sample and sample[KEY] != key:
                    yield sample
                    sample = {}
                sample[KEY] = key
                sample[extension.lower()] = content.read()
    except (tarfile.TarError, OSError, EOFError) as error:
        raise JobFailed(f"{file.url}: {error}") from error
    if sample:
        yield sample


def _type_of(name: str) -> pa.DataType:
    if name in _NUMBERS:
        return pa.int64()
    return pa.string() if name in _TEXTS or name == KEY else pa.binary()


def _value(name: str, content: Any) -> Any:
    """Return the value of a member. Raises ValueError."""
    if content is None or name == KEY:
        return content
    if name in _NUMBERS:
        return int(content)
    return content.decode() if name in _TEXTS else content
