"""The view where there is no terminal: a line per window, the result of each level."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TextIO

from tritonpy_bench.figures.snapshot import Snapshot
from tritonpy_bench.report.result import LevelResult
from tritonpy_bench.report.text import level_lines
from tritonpy_bench.report.wording import duration, rate
from tritonpy_bench.target.facts import TargetFacts

_PAUSE_S = 5.0


class PlainView:
    """Writes lines to `output`, while a level runs one every five seconds."""

    def __init__(self, output: TextIO) -> None:
        self._output = output
        self._decoupled = False
        self._written = time.monotonic()

    def begin(self, facts: TargetFacts, notes: Sequence[str]) -> None:
        """Say what is loaded."""
        self._decoupled = facts.model.decoupled
        self._line(f"model {facts.model.name} on {facts.server.name} {facts.server.version}")
        for note in notes:
            self._line(f"note: {note}")

    def look(self, level: float, window: int, look: Snapshot) -> None:
        """Say now and then that it goes on."""
        if time.monotonic() - self._written >= _PAUSE_S:
            self._line(look_text(level, window, look))

    def measured(self, result: LevelResult) -> None:
        """Say what came out."""
        for line in level_lines(result, self._decoupled):
            self._line(line)

    def end(self) -> None:
        """Nothing is left open."""

    def _line(self, text: str) -> None:
        self._output.write(f"{text}\n")
        self._output.flush()
        self._written = time.monotonic()


def look_text(level: float, window: int, look: Snapshot) -> str:
    """Return one look as a line."""
    stage = f"window {window}" if window else "warming up"
    per_s = rate(look.succeeded / max(look.seconds, 1e-9))
    failed = f", {look.failed:,} FAILED" if look.failed else ""
    return (
        f"  {level:g}, {stage}: {per_s} requests/s, p50 {duration(look.latency.percentile(50) / 1e3)}, "
        f"p99 {duration(look.latency.percentile(99) / 1e3)}{failed}"
    )
