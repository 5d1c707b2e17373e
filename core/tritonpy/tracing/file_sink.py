"""The trace mode `triton`, which writes JSON files like Triton's."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from tritonpy.api.options import Options
from tritonpy.api.trace_sink import TraceSink
from tritonpy.tracing.json_text import records
from tritonpy.tracing.rule import TraceRule
from tritonpy.tracing.trace_file import TraceFile
from tritonpy.types.trace import TraceFamily

_MAX_PENDING = 64 * 2**20  # bytes; Triton keeps everything in memory


class FileOptions(Options, frozen=True):
    """The options under `trace: modes: triton:` of server.yaml."""

    file: Annotated[str, Meta(description="File for traces; nothing is traced without it")] = ""
    log_frequency: Annotated[
        int,
        Meta(
            ge=0, description="Number of traces per file FILE.0, FILE.1, …; 0: all traces in FILE, written at the end"
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
