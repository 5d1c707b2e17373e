"""Which format a file has."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import msgspec

from tritonpy_batch.inputs.arrays import NpyFormat, NpzFormat
from tritonpy_batch.inputs.columnar import ArrowFormat, ParquetFormat
from tritonpy_batch.inputs.files import InputFile
from tritonpy_batch.inputs.input_format import InputFormat
from tritonpy_batch.inputs.media import ImageFormat, WebDatasetFormat
from tritonpy_batch.inputs.text import CsvFormat, JsonLinesFormat, LinesFormat, TsvFormat
from tritonpy_batch.options import InvalidJob

OPENAI = "openai"
_FORMATS: dict[str, Callable[[int], InputFormat]] = {
    "parquet": ParquetFormat,
    "arrow": ArrowFormat,
    "jsonl": JsonLinesFormat,
    "csv": CsvFormat,
    "tsv": TsvFormat,
    "text": LinesFormat,
    "npy": NpyFormat,
    "npz": NpzFormat,
    "images": ImageFormat,
    "webdataset": WebDatasetFormat,
    OPENAI: LinesFormat,
}
INPUT_FORMATS = tuple(_FORMATS)
_SUFFIXES = {
    "parquet": "parquet", "pq": "parquet", "arrow": "arrow", "feather": "arrow", "ipc": "arrow",
    "jsonl": "jsonl", "ndjson": "jsonl", "csv": "csv", "tsv": "tsv", "txt": "text",
    "npy": "npy", "npz": "npz", "tar": "webdataset",
    **dict.fromkeys(("jpg", "jpeg", "png", "webp", "bmp", "gif", "tif", "tiff"), "images"),
}  # fmt: skip
_SUFFIX = re.compile(r"\.([a-z0-9]+)$", re.IGNORECASE)
_OPENAI_KEYS = {"custom_id", "method", "url", "body"}


def open_format(
    files: Sequence[InputFile], named: str, block_bytes: int
) -> tuple[str, InputFormat]:
    """Return the name and the reader of the files' common format; `named` is one or "".

    Blocks that it reads have about `block_bytes`. Raises InvalidJob for unknown formats and for
    files of several formats.
    """
    if named:
        if named not in _FORMATS:
            raise InvalidJob(f"--input-format {named}: expected one of {', '.join(INPUT_FORMATS)}")
        return named, _FORMATS[named](block_bytes)
    kinds = {_kind_of(file): file for file in files}
    if len(kinds) > 1:
        (one, first), (other, second) = list(kinds.items())[:2]
        raise InvalidJob(
            f"the inputs have several formats: {first.url} is {one}, {second.url} is {other}: "
            "run one job for each"
        )
    kind = next(iter(kinds))
    if kind == "jsonl" and _has_openai_requests(files[0]):
        kind = OPENAI
    return kind, _FORMATS[kind](block_bytes)


def _kind_of(file: InputFile) -> str:
    suffix = _SUFFIX.search(file.name)
    kind = _SUFFIXES.get(suffix[1].lower()) if suffix else None
    if kind is None:
        raise InvalidJob(
            f"{file.url}: unknown format: give --input-format, one of {', '.join(INPUT_FORMATS)}"
        )
    return kind


def _has_openai_requests(file: InputFile) -> bool:
    with file.open() as handle:
        line = handle.read(1 << 20).lstrip().split(b"\n", 1)[0]
    try:
        first = msgspec.json.decode(line)
    except msgspec.DecodeError:
        return False
    return isinstance(first, dict) and set(first) >= _OPENAI_KEYS
