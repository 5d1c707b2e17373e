"""The trace mode `triton`, which writes JSON files like Triton's."""

from __future__ import annotations

import contextlib
import itertools
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from tritonpy.api.trace_sink import TraceSink
from tritonpy.tracing.rule import TraceRule
from tritonpy_config.options import Options
from tritonpy_types import Tensor
from tritonpy_types.trace import TensorCopy, Trace, TraceFamily

_MAX_PENDING = 64 * 2**20  # bytes; Triton keeps everything in memory


_BINARY = frozenset({"FP16", "BF16"})  # Triton omits these: C++ has no such number types


log = logging.getLogger("tritonpy.tracing")


class TraceFile:
    """Trace files, each with one JSON array.

    Write errors lose traces and are logged once until a write succeeds.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._numbers = itertools.count()
        self._size = 0  # bytes written to FILE
        self._failing = False

    def append(self, texts: Sequence[bytes]) -> None:
        """Append to FILE. The first call replaces an existing file; `close` completes the JSON."""
        text = (b"," if self._size else b"[") + b",".join(texts)
        self._write_at_end(text)

    def write_next(self, texts: Sequence[bytes]) -> None:
        """Write a complete file with the next number."""
        path = self._path.with_name(f"{self._path.name}.{next(self._numbers)}")
        try:
            path.write_bytes(b"[%b]" % b",".join(texts))
        except OSError as error:
            with contextlib.suppress(OSError):
                path.unlink()
            self._failed(path, error)
        else:
            self._failing = False

    def close(self) -> None:
        """Complete FILE if it was written."""
        if self._size:
            self._write_at_end(b"]")

    def _write_at_end(self, text: bytes) -> None:
        try:
            with self._path.open("r+b" if self._size else "wb") as file:
                file.seek(self._size)
                file.truncate()  # remove a partial write to a full disk
                file.write(text)
        except OSError as error:
            self._failed(self._path, error)
        else:
            self._size += len(text)
            self._failing = False

    def _failed(self, path: Path, error: OSError) -> None:
        if not self._failing:
            log.error("traces are lost: cannot write '%s': %s", path, error.strerror)
        self._failing = True


def records(family: TraceFamily) -> bytes:
    """Return the records of all traces of `family` as JSON objects, separated by commas."""
    return b",".join(
        [msgspec.json.encode(record) for trace in family.traces for record in _records(trace)]
    )


def _records(trace: Trace) -> Iterator[dict[str, Any]]:
    for note in trace.notes:
        if isinstance(note, TensorCopy):
            yield {"id": trace.id, "activity": note.activity, "tensor": _tensor(note.tensor)}
            continue
        if note.name == "REQUEST_START":
            yield _identity(trace)
        yield {"id": trace.id, "timestamps": [{"name": note.name, "ns": note.ns}]}


def _identity(trace: Trace) -> dict[str, Any]:
    record: dict[str, Any] = {
        "id": trace.id,
        "model_name": trace.model_name,
        "model_version": trace.model_version,
    }
    if trace.request_id:
        record["request_id"] = trace.request_id
    if trace.parent_id:
        record["parent_id"] = trace.parent_id
    return record


def _tensor(tensor: Tensor) -> dict[str, str]:
    shape = ",".join([str(dimension) for dimension in tensor.shape])
    return {
        "name": tensor.name,
        "data": _elements(tensor),
        "shape": shape,
        "dtype": tensor.datatype,
    }


def _elements(tensor: Tensor) -> str:
    if tensor.datatype in _BINARY:
        return ""
    if tensor.datatype == "BYTES":
        return ",".join(
            [f'"{text.decode(errors="backslashreplace")}"' for text in tensor.strings()]
        )
    values = tensor.data.ravel().tolist()
    if tensor.datatype.startswith("FP"):
        return ",".join(["%g" % value for value in values])  # noqa: UP031 - C++'s notation
    return ",".join([str(int(value)) for value in values])


class FileOptions(Options, frozen=True):
    """The options under `trace: modes: triton:` of server.yaml."""

    file: Annotated[str, Meta(description="File for traces; nothing is traced without it")] = ""
    log_frequency: Annotated[
        int,
        Meta(
            ge=0,
            description=(
                "Number of traces per file FILE.0, FILE.1, …; 0: all traces in FILE, "
                "written at the end"
            ),
        ),
    ] = 0


class _PendingTraces:
    """Traces of one rule that are not written yet."""

    def __init__(self) -> None:
        self.texts: list[bytes] = []
        self.size = 0

    def add(self, text: bytes) -> None:
        self.texts.append(text)
        self.size += len(text)


class FileSink(TraceSink):
    """Writes the collected traces every `log_frequency` traces, at the trace count, and at the end.

    A change of settings also writes the traces that were collected under the old ones.
    """

    Options = FileOptions
    options: FileOptions

    def __init__(self, options: FileOptions) -> None:
        super().__init__(options)
        self._file = TraceFile(Path(options.file))
        self._pending: dict[TraceRule, _PendingTraces] = {}

    def missing(self) -> str:
        return "" if self.options.file else "trace file name is not given"

    def take(self, family: TraceFamily) -> None:
        rule: TraceRule = family.rule
        pending = self._pending.setdefault(rule, _PendingTraces())
        pending.add(records(family))
        if rule.complete or 0 < rule.log_frequency <= len(pending.texts):
            self._file.write_next(self._pending.pop(rule).texts)
        elif pending.size > _MAX_PENDING:
            self.settled(rule)

    def settled(self, rule: Any) -> None:
        pending = self._pending.pop(rule, None)
        if pending is None:
            return
        if rule.log_frequency:
            self._file.write_next(pending.texts)
        else:
            self._file.append(pending.texts)

    def close(self) -> None:
        for rule in list(self._pending):
            self.settled(rule)
        self._file.close()
