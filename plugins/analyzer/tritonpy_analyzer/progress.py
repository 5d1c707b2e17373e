"""Progress of an analysis: a bar in a terminal, otherwise plain lines."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TextIO

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from tritonpy_analyzer.findings import SearchView


class BarView:
    """Shows the time left, the best configuration so far, and each decision above the bar."""

    def __init__(self, console: Console, seconds: float) -> None:
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(30),
            TimeRemainingColumn(),
            TextColumn("{task.fields[best]}", style="dim"),
            console=console,
            transient=True,
        )
        self._task = self._bar.add_task("starting", total=seconds, best="")

    def start(self) -> None:
        """Show the bar."""
        self._bar.start()

    def stop(self) -> None:
        """Remove the bar."""
        self._bar.stop()

    def phase(self, text: str) -> None:
        """Show what begins now."""
        self._bar.update(self._task, description=escape(text))

    def progress(self, elapsed_s: float, best: str) -> None:
        """Show the elapsed time and the best candidate so far."""
        text = f"best: {best}" if best else ""
        self._bar.update(self._task, completed=elapsed_s, best=escape(text))

    def verdict(self, text: str) -> None:
        """Show a decision above the bar."""
        self._bar.console.print(escape(text), style="dim", highlight=False)


class LineView:
    """Writes one line per phase and decision."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._elapsed_s = 0.0

    def phase(self, text: str) -> None:
        """Write what begins now."""
        self._write(text)

    def progress(self, elapsed_s: float, best: str) -> None:
        """Record the time for the next line."""
        self._elapsed_s = elapsed_s

    def verdict(self, text: str) -> None:
        """Write a decision."""
        self._write(f"  {text}")

    def _write(self, text: str) -> None:
        self._out.write(f"{self._elapsed_s:5.0f} s  {text}\n")
        self._out.flush()


@contextlib.contextmanager
def progress_view(seconds: float, out: TextIO) -> Iterator[SearchView]:
    """Yield the view that suits `out`."""
    console = Console(file=out)
    if not console.is_terminal:
        yield LineView(out)
        return
    view = BarView(console, seconds)
    view.start()
    try:
        yield view
    finally:
        view.stop()
