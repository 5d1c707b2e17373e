"""The result of a benchmark, as it is written to JSON and read again. Durations in microseconds unless their name says otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from tritonpy_bench.figures.histogram import Histogram
from tritonpy_bench.figures.server_share import ServerShare
from tritonpy_bench.options import BadUsage

FORMAT = 1
CURVE = (0, 10, 20, 30, 40, 50, 60, 70, 75, 80, 85, 90, 92.5, 95, 96, 97, 98, 99, 99.5, 99.9, 99.95, 99.99, 100)


class Figures(msgspec.Struct, frozen=True):
    """What is told of durations; `curve` are pairs of a percentile and the duration that it stands for."""

    count: int
    mean: float
    least: float
    most: float
    p50: float
    p90: float
    p95: float
    p99: float
    p999: float
    curve: tuple[tuple[float, float], ...]

    def at(self, percentile: int | None) -> float:
        """Return a percentile of the curve, drawn straight between its points; None is the mean."""
        if percentile is None:
            return self.mean
        for (left, low), (right, high) in zip(self.curve, self.curve[1:], strict=False):
            if left <= percentile <= right:
                return low + (high - low) * (percentile - left) / (right - left)
        return 0.0


class Moment(msgspec.Struct, frozen=True):
    """One tick of a level: when it ended (seconds from the level's beginning) and what was counted in it."""

    at_s: float
    requests_per_s: float
    failed: int
    p50: float
    p99: float


class LevelResult(msgspec.Struct, frozen=True, kw_only=True):
    """One level of load. `mode` is concurrency, request_rate or request_intervals; `counted` says that the number of requests was given.

    `latency` counts from when a request was to start, `service` from when it went out: they differ in an open loop, and there by what a
    client would see. `late` is the generator's own lateness, `waited` the time for a free connection or sequence. `watched` is the latency
    that stability and threshold look at.
    """

    mode: str
    level: float
    stable: bool
    counted: bool
    windows: int
    seconds: float
    interrupted: bool
    kept: bool
    watched: float
    requests: int
    failed: int
    errors: dict[str, int]
    responses: int
    requests_per_s: float
    inferences_per_s: float
    responses_per_s: float
    latency: Figures
    service: Figures
    late: Figures
    waited: Figures
    first: Figures
    between: Figures
    client_cpu_us: float
    client_busiest: float
    client_starved: float
    complaints: tuple[str, ...]
    in_flight: int
    unsent: int
    oldest_ms: float
    server: tuple[ServerShare, ...]
    timeline: tuple[Moment, ...]


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """A whole benchmark; `trouble` is what ended it before all its levels were measured."""

    format: int
    tool: str
    started: str
    command: str
    protocol: str
    url: str
    server: str
    model: str
    version: str
    batch: int
    streaming: bool
    decoupled: bool
    sequence: bool
    percentile: int | None
    latency_threshold_ms: float
    notes: tuple[str, ...]
    trouble: str
    levels: tuple[LevelResult, ...]

    @property
    def title(self) -> str:
        """Model, server and protocol in one line."""
        return f"{self.model} on {self.server or self.url} over {self.protocol}"


def figures(counted: Histogram) -> Figures:
    """Return what is told of a histogram."""
    wanted = sorted({*CURVE, 50.0, 90.0, 95.0, 99.0, 99.9})
    found = dict(zip(wanted, (value / 1e3 for value in counted.percentiles(wanted)), strict=True))
    return Figures(
        count=counted.total,
        mean=counted.mean / 1e3,
        least=counted.least / 1e3 if counted.total else 0.0,
        most=counted.most / 1e3,
        p50=found[50],
        p90=found[90],
        p95=found[95],
        p99=found[99],
        p999=found[99.9],
        curve=tuple((percent, found[percent]) for percent in CURVE) if counted.total else (),
    )


def write_json(path: Path, result: Result) -> None:
    """Write a result. Raises OSError."""
    path.write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=1))


def read_results(paths: Sequence[Path]) -> list[Result]:
    """Read results again. Raises BadUsage naming the file that is none."""
    results = []
    for path in paths:
        try:
            result = msgspec.json.decode(path.read_bytes(), type=Result)
        except (OSError, msgspec.DecodeError) as error:
            raise BadUsage(f"{path} is no result of tritonpy bench --json: {error}") from error
        if result.format != FORMAT:
            raise BadUsage(f"{path} has the format {result.format}, this version reads {FORMAT}")
        results.append(result)
    return results
