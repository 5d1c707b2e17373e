"""Plain view without a terminal: progress lines and the result of each level."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TextIO

from tritonpy_bench.report.result import LevelResult
from tritonpy_bench.report.text import level_lines
from tritonpy_bench.report.wording import duration, rate
from tritonpy_load_generator.figures.snapshot import Snapshot
from tritonpy_load_generator.target.metadata import TargetDescription

_PAUSE_S = 5.0


class PlainView:
    """Writes lines to `output`; while a level runs, at most one every five seconds."""

    def __init__(self, output: TextIO) -> None:
        self._output = output
        self._decoupled = False
        self._written = time.monotonic()

    def begin(self, target: TargetDescription, notes: Sequence[str]) -> None:
        """Print the target and notes."""
        self._decoupled = target.model.decoupled
        self._line(f"model {target.model.name} on {target.server.name} {target.server.version}")
        for note in notes:
            self._line(f"note: {note}")

    def update(self, level: float, window: int, snapshot: Snapshot) -> None:
        """Print a snapshot if the last line is old enough."""
        if time.monotonic() - self._written >= _PAUSE_S:
            self._line(snapshot_text(level, window, snapshot))

    def measured(self, result: LevelResult) -> None:
        """Print a level's result."""
        for line in level_lines(result, self._decoupled):
            self._line(line)

    def end(self) -> None:
        """Do nothing; the view holds no resources."""

    def _line(self, text: str) -> None:
        self._output.write(f"{text}\n")
        self._output.flush()
        self._written = time.monotonic()


def snapshot_text(level: float, window: int, snapshot: Snapshot) -> str:
    """Return a snapshot as one line."""
    stage = f"window {window}" if window else "warming up"
    per_s = rate(snapshot.succeeded / max(snapshot.seconds, 1e-9))
    failed = f", {snapshot.failed:,} FAILED" if snapshot.failed else ""
    return (
        f"  {level:g}, {stage}: {per_s} requests/s, p50 "
        f"{duration(snapshot.latency.percentile(50) / 1e3)}, "
        f"p99 {duration(snapshot.latency.percentile(99) / 1e3)}{failed}"
    )
