"""Rows of a table: two servers under the same load, in interleaved pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bench.clients import LoadResult
from bench.processes import Running
from bench.verdict import Verdict, judge

RATE, P50, P99 = "rate", "p50", "p99"
NO_GOAL = None


@dataclass(frozen=True)
class Case:
    """One row: a load, the other server, the compared value, and the goal for the ratio.

    `aim` is the desired ratio. With a goal of None, the row has no verdict.
    """

    name: str
    other: str
    load: Callable[[Running, int], LoadResult]
    goal: float | None
    figure: str = RATE
    subject: str = "tritonpy"
    aim: float | None = None

    @property
    def latency(self) -> bool:
        """Whether lower values are better."""
        return self.figure != RATE

    def value(self, load: LoadResult) -> float:
        """Return the compared value: requests per second or microseconds."""
        return {RATE: load.rate, P50: load.p50_us, P99: load.p99_us}[self.figure]


@dataclass(frozen=True)
class Row:
    """The results of one case."""

    case: Case
    ours: list[LoadResult]
    theirs: list[LoadResult]
    verdict: Verdict


def measure(case: Case, subject: Running, other: Running, pairs: int, seconds: int) -> Row:
    """Load both servers alternately and judge the pairs."""
    ours: list[LoadResult] = []
    theirs: list[LoadResult] = []
    for server in (subject, other):
        case.load(server, 1)  # warm-up
    for _ in range(pairs):
        ours.append(case.load(subject, seconds))
        theirs.append(case.load(other, seconds))
    figures = [[case.value(load) for load in loads] for loads in (ours, theirs)]
    return Row(
        case, ours, theirs, judge(figures[0], figures[1], case.goal, lower_is_better=case.latency)
    )


def table(rows: list[Row]) -> str:
    """Return the rows as a Markdown table."""
    lines = [
        (
            "| load | against | ours | theirs | ratio [90 %] | goal | server CPU us/request, "
            "ours / theirs |"
        ),
        "|---|---|---|---|---|---|---|",
    ]
    return "\n".join(lines + ["| " + " | ".join(_cells(row)) + " |" for row in rows])


def line(row: Row) -> str:
    """Return one row as text."""
    return ": ".join((f"{row.case.name} against {row.case.other}", ", ".join(_cells(row)[2:])))


def _cells(row: Row) -> Iterator[str]:
    def median_of(values: list[float]) -> float:
        return sorted(values)[len(values) // 2]

    case = row.case
    unit = "us" if case.latency else "/s"
    figures = [median_of([case.value(load) for load in loads]) for loads in (row.ours, row.theirs)]
    cpu = [median_of([load.cpu_us for load in loads]) for loads in (row.ours, row.theirs)]
    goal = (
        "none" if case.goal is None else f"{'at most' if case.latency else 'at least'} {case.goal}"
    )
    if case.aim is not None:
        goal += f", aim {case.aim}"
    return [
        case.name, case.other,
        *(f"{figure:,.{0 if figure >= 100 else 1}f} {unit}" for figure in figures),
        str(row.verdict), goal,
        f"{cpu[0]:.0f} / {cpu[1]:.0f}",
    ]  # fmt: skip
