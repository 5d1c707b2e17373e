"""The trace mode `triton`: JSON files as Triton writes them."""

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

_MOST_KEPT = 64 * 2**20  # bytes; the real Triton keeps all


class FileOptions(Options, frozen=True):
    """The options under `trace: modes: triton:` of server.yaml."""

    file: Annotated[str, Meta(description="Where traces are written; without it nothing is traced")] = ""
    log_frequency: Annotated[
        int, Meta(ge=0, description="Write FILE.0, FILE.1, … after so many traces each; 0: all to FILE at the end")
    ] = 0


class _Kept:
    """The traces of one rule that are not written yet."""

    def __init__(self) -> None:
        self.texts: list[bytes] = []
        self.size = 0

    def add(self, text: bytes) -> None:
        self.texts.append(text)
        self.size += len(text)


class FileSink(TraceSink):
    """Writes as the settings say: every so many traces, when as many as asked for are there, or when the settings change and at the end."""

    Options = FileOptions
    options: FileOptions

    def __init__(self, options: FileOptions) -> None:
        super().__init__(options)
        self._file = TraceFile(Path(options.file))
        self._kept: dict[TraceRule, _Kept] = {}

    def missing(self) -> str:
        return "" if self.options.file else "trace file name is not given"

    def take(self, family: TraceFamily) -> None:
        rule: TraceRule = family.rule
        kept = self._kept.setdefault(rule, _Kept())
        kept.add(records(family))
        if rule.complete or 0 < rule.log_frequency <= len(kept.texts):
            self._file.write_next(self._kept.pop(rule).texts)
        elif kept.size > _MOST_KEPT:
            self.settled(rule)

    def settled(self, rule: Any) -> None:
        kept = self._kept.pop(rule, None)
        if kept is None:
            return
        if rule.log_frequency:
            self._file.write_next(kept.texts)
        else:
            self._file.append(kept.texts)

    def close(self) -> None:
        for rule in list(self._kept):
            self.settled(rule)
        self._file.close()
