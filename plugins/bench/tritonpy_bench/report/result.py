"""Result of a benchmark and its JSON file.

Durations are in microseconds unless the name has another unit.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from tritonpy_load_generator.figures.histogram import LatencyHistogram
from tritonpy_load_generator.figures.server_share import ServerShare
from tritonpy_load_generator.options import BadUsage

FORMAT = 1
CURVE = (
    0,
    10,
    20,
    30,
    40,
    50,
    60,
    70,
    75,
    80,
    85,
    90,
    92.5,
    95,
    96,
    97,
    98,
    99,
    99.5,
    99.9,
    99.95,
    99.99,
    100,
)


class Figures(msgspec.Struct, frozen=True):
    """Summary of durations; `curve` has pairs of a percentile and its duration."""

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
        """Return a percentile by linear interpolation of the curve; None returns the mean."""
        if percentile is None:
            return self.mean
        for (left, low), (right, high) in zip(self.curve, self.curve[1:], strict=False):
            if left <= percentile <= right:
                return low + (high - low) * (percentile - left) / (right - left)
        return 0.0


class TimelinePoint(msgspec.Struct, frozen=True):
    """Counts of one snapshot of a level; it ended `at_s` seconds after the level's start."""

    at_s: float
    requests_per_s: float
    failed: int
    p50: float
    p99: float


class LevelResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of one level. `mode` is concurrency, request_rate or request_intervals.

    `counted` is true if the number of requests was fixed. `latency` counts from the intended start
    of a request, `service` from when it was sent; they differ in an open loop. `late` is the
    generator's own delay, `waited` the wait for a free connection or sequence. `watched` is the
    latency that stability and threshold use.
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
    timeline: tuple[TimelinePoint, ...]


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a benchmark; `trouble` is the error that ended it before the last level."""

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


def figures(counted: LatencyHistogram) -> Figures:
    """Return the summary of a histogram of ns."""
    percentiles = sorted({*CURVE, 50.0, 90.0, 95.0, 99.0, 99.9})
    found = dict(
        zip(percentiles, (value / 1e3 for value in counted.percentiles(percentiles)), strict=True)
    )
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
    """Read result files. Raises BadUsage with the name of an invalid file."""
    results = []
    for path in paths:
        try:
            result = msgspec.json.decode(path.read_bytes(), type=Result)
        except (OSError, msgspec.DecodeError) as error:
            raise BadUsage(f"{path} is not a result of tritonpy bench --json: {error}") from error
        if result.format != FORMAT:
            raise BadUsage(f"{path} has format {result.format}, but this version reads {FORMAT}")
        results.append(result)
    return results
