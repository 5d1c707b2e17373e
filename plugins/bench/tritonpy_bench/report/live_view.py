"""Live view in a terminal: the current measurement and the finished levels."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from tritonpy_bench.options import BenchOptions
from tritonpy_bench.report.result import LevelResult
from tritonpy_bench.report.text import level_lines
from tritonpy_bench.report.wording import duration, level_name, rate, verdict
from tritonpy_load_generator.figures.snapshot import Snapshot
from tritonpy_load_generator.target.metadata import TargetDescription

_BARS = "▁▂▃▄▅▆▇█"
_WIDTH = 60


class LiveView:
    """Draws on `console` while the benchmark runs, then prints the results of all levels."""

    def __init__(self, console: Console, options: BenchOptions) -> None:
        self._console = console
        self._options = options
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._title = options.model
        self._decoupled = False
        self._notes: Sequence[str] = ()
        self._results: list[LevelResult] = []
        self._rates: deque[float] = deque(maxlen=_WIDTH)
        self._errors: Counter[str] = Counter()

    def begin(self, target: TargetDescription, notes: Sequence[str]) -> None:
        """Open the view."""
        self._decoupled = target.model.decoupled
        self._notes = notes
        self._title = (
            f"{target.model.name} on {target.server.name} {target.server.version}, "
            f"{self._options.protocol}"
        )
        self._live.start()

    def update(self, level: float, window: int, snapshot: Snapshot) -> None:
        """Draw a snapshot."""
        self._rates.append(snapshot.succeeded / max(snapshot.seconds, 1e-9))
        self._errors.update(snapshot.errors)
        self._live.update(Group(self._panel(level, window, snapshot), self._table()), refresh=True)

    def measured(self, result: LevelResult) -> None:
        """Add a level's result to the table."""
        self._results.append(result)
        self._rates.clear()
        self._errors.clear()

    def end(self) -> None:
        """Close the view and print the results."""
        self._live.stop()
        for note in self._notes:
            self._console.print(Text(f"note: {note}"))
        for result in self._results:
            for line in level_lines(result, self._decoupled):
                style = "red" if line.lstrip().startswith(("FAILED", "WARNING")) else ""
                self._console.print(Text(line, style), soft_wrap=True)

    def _panel(self, level: float, window: int, snapshot: Snapshot) -> Panel:
        stage = f"window {window} of at most {self._options.max_trials}" if window else "warming up"
        latency = snapshot.latency
        figures = "  ".join(
            f"p{percent} {duration(latency.percentile(percent) / 1e3)}"
            for percent in (50, 90, 95, 99)
        )
        lines = [
            Text(f"{self._unit} {level:g}, {stage} (Ctrl-C stops and keeps the results so far)"),
            Text(f"{rate(self._rates[-1]):>8} requests/s  {sparkline(self._rates)}", "bold"),
            Text(f"latency   {figures}  max {duration(latency.most / 1e3)}"),
            Text(
                f"in flight {snapshot.in_flight:,}, waiting {snapshot.unsent:,}, "
                f"client {snapshot.busiest:.0%} of a core"
            ),
        ]
        lines += [Text(f"{count:,} x {text}", "red") for text, count in self._errors.most_common(5)]
        return Panel(Group(*lines), title=self._title, title_align="left")

    def _table(self) -> RenderableType:
        table = Table("load", "requests/s", "p50", "p99", "failed", "", box=None)
        for each in self._results:
            latency = each.latency
            table.add_row(
                level_name(each), rate(each.requests_per_s), duration(latency.p50),
                duration(latency.p99),
                f"{each.failed:,}", verdict(each),
            )  # fmt: skip
        return table

    @property
    def _unit(self) -> str:
        return "requests/s" if self._options.open_loop else "concurrency"


def sparkline(values: Sequence[float]) -> str:
    """Return values as a row of small bars; the maximum has full height."""
    most = max(values, default=0.0)
    return "".join(
        _BARS[int(value / most * (len(_BARS) - 1))] if most else _BARS[0] for value in values
    )
