"""Progress of a job: a bar in a terminal, plain lines, or JSON lines."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, Protocol, TextIO

import msgspec
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from tritonpy_batch.summary import JobProgress, size_text

_LINE_EVERY_S = 10.0
_JSON_EVERY_S = 1.0


class ProgressView(Protocol):
    """Is called while a job runs."""

    def update(self, progress: JobProgress) -> None:
        """Show the counts, several times per second."""


class NoProgress:
    """Shows nothing."""

    def update(self, progress: JobProgress) -> None:
        """Do nothing."""


class JobBar(NoProgress):
    """A bar over the bytes of the input, with rates, batch fill and errors."""

    def __init__(self, bar: Progress) -> None:
        self._bar = bar
        self._task = bar.add_task("starting", total=None)

    def update(self, progress: JobProgress) -> None:
        """Move the bar."""
        # a shard counts when it is complete; rows of open shards only move the rates
        self._bar.update(
            self._task,
            total=progress.total_bytes,
            completed=progress.done_bytes,
            description=_rates(progress),
        )


class JobLines(NoProgress):
    """A line every ten seconds."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._next = time.monotonic() + _LINE_EVERY_S

    def update(self, progress: JobProgress) -> None:
        """Write a line when it is due."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _LINE_EVERY_S
        share = progress.done_bytes / max(progress.total_bytes, 1)
        self._out.write(f"{progress.seconds:6.0f} s  {share:4.0%}  {_rates(progress)}\n")
        self._out.flush()


class JobJson(NoProgress):
    """A JSON object with all counts per second."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._next = 0.0

    def update(self, progress: JobProgress) -> None:
        """Write an object when it is due."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _JSON_EVERY_S
        fields = {**msgspec.structs.asdict(progress), "rate": progress.rate}
        self._out.write(msgspec.json.encode(fields).decode() + "\n")
        self._out.flush()


def _rates(progress: JobProgress) -> str:
    text = (
        f"{progress.rows:,} rows  {progress.rate:,.0f}/s  {size_text(progress.bytes_rate)}/s  "
        f"batches {progress.fill:.0%} full"
    )
    if progress.busy:
        text += f"  busy {progress.busy:.0%}"
    if progress.errors:
        text += f"  {progress.errors:,} errors"
    return text


@contextmanager
def progress_view(kind: Literal["auto", "json", "none"], out: TextIO) -> Iterator[ProgressView]:
    """Yield the view of that kind; `auto` is a bar in a terminal, otherwise lines."""
    if kind == "none":
        yield NoProgress()
        return
    if kind == "json":
        yield JobJson(out)
        return
    console = Console(file=out)
    if not console.is_terminal:
        yield JobLines(out)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(24),
        TaskProgressColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        yield JobBar(bar)
