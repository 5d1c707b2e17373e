"""What an analysis is to reach: constraints such as `p99<20ms`, and objectives."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from math import inf

import msgspec

from tritonpy_load_generator.figures.histogram import LatencyHistogram
from tritonpy_load_generator.options import BadUsage

_PATTERN = re.compile(r"^\s*([a-z0-9.]+)\s*(<=?|>=?)\s*([0-9.eE+]+)\s*([a-zA-Z/%]*)\s*$")
_UNITS = {
    "time": {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "": 1e-3},
    "size": {
        "": 1.0, "B": 1.0, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30,
        "KB": 1e3, "MB": 1e6, "GB": 1e9, "K": 2**10, "M": 2**20, "G": 2**30,
    },
    "rate": {"": 1.0, "/s": 1.0, "rps": 1.0},
    "share": {"": 1.0, "%": 0.01},
}  # fmt: skip


class Metric(StrEnum):
    """A measured quantity. Latencies are in seconds, memory in bytes, rates per second."""

    RATE = "rate"
    P50 = "p50"
    P90 = "p90"
    P95 = "p95"
    P99 = "p99"
    P999 = "p99.9"
    MEAN = "mean"
    TTFT = "ttft"
    ITL = "itl"
    MEMORY_CPU = "memory.cpu"
    MEMORY_GPU = "memory.gpu"
    ERRORS = "errors"

    @property
    def percentile(self) -> float | None:
        """The percentile of the latency that this metric is, such as 99.9, or None."""
        return float(self.value[1:]) if self.value[0] == "p" else None

    @property
    def kind(self) -> str:
        """The kind of unit: time, size, rate or share."""
        if self is Metric.RATE:
            return "rate"
        if self is Metric.ERRORS:
            return "share"
        return "size" if self.value.startswith("memory") else "time"


class Constraint(msgspec.Struct, frozen=True):
    """A bound of a metric: `p99<20ms`."""

    metric: Metric
    upper: bool
    limit: float

    def violation(self, value: float) -> float:
        """Return how far `value` is beyond the limit as a share of it; at most 0 if it is kept."""
        scale = self.limit or 1.0
        return (value - self.limit) / scale if self.upper else (self.limit - value) / scale

    def __str__(self) -> str:
        sign = "<" if self.upper else ">"
        return f"{self.metric}{sign}{value_text(self.metric, self.limit)}"


class Objective(msgspec.Struct, frozen=True):
    """A metric to maximize or minimize."""

    metric: Metric
    maximize: bool

    def gain(self, value: float, over: float) -> float:
        """Return the ratio of `value` to `over`, above 1 if `value` is better."""
        if not value or not over:
            return 1.0
        return value / over if self.maximize else over / value

    def __str__(self) -> str:
        return f"{'maximize' if self.maximize else 'minimize'} {self.metric}"


class Goals(msgspec.Struct, frozen=True):
    """All constraints and objectives of an analysis; the first objective ranks."""

    constraints: tuple[Constraint, ...] = ()
    objectives: tuple[Objective, ...] = (Objective(Metric.RATE, True),)

    @property
    def latency_limits(self) -> tuple[Constraint, ...]:
        """The constraints of percentiles of the latency."""
        return tuple(
            each for each in self.constraints if each.upper and each.metric.percentile is not None
        )

    @property
    def finds_rate(self) -> bool:
        """Whether the figure of merit is the highest rate within a latency limit."""
        return bool(self.latency_limits) and self.objectives[0] == Objective(Metric.RATE, True)


def parse_goals(
    constraints: Sequence[str], maximize: Sequence[str] = (), minimize: Sequence[str] = ()
) -> Goals:
    """Parse constraints, such as `p99<20ms`, and the metrics to maximize and minimize.

    Several constraints may be joined by commas. Raises BadUsage with the accepted names and units.
    """
    parsed = tuple(
        _constraint(part) for text in constraints for part in text.split(",") if part.strip()
    )
    objectives = [Objective(_metric(name), True) for name in maximize]
    objectives += [Objective(_metric(name), False) for name in minimize]
    return Goals(parsed, tuple(objectives) or (Objective(Metric.RATE, True),))


def _constraint(text: str) -> Constraint:
    match = _PATTERN.match(text)
    if match is None:
        raise BadUsage(f"'{text}' is not a constraint: write METRIC<VALUE, such as p99<20ms")
    name, sign, number, unit = match.groups()
    metric = _metric(name)
    units = _UNITS[metric.kind]
    if unit not in units:
        known = ", ".join(each for each in units if each)
        raise BadUsage(f"'{text}': '{unit}' is no unit of {metric}; use {known}")
    try:
        limit = float(number) * units[unit]
    except ValueError as error:
        raise BadUsage(f"'{text}': '{number}' is not a number") from error
    if not limit < inf or (limit <= 0 and metric is not Metric.ERRORS):
        raise BadUsage(f"'{text}': the limit must be greater than 0")
    return Constraint(metric, sign.startswith("<"), limit)


def _metric(name: str) -> Metric:
    try:
        return Metric(name)
    except ValueError as error:
        raise BadUsage(f"'{name}' is no metric; use one of {', '.join(Metric)}") from error


def parse_size(text: str) -> float:
    """Parse a number of bytes, such as 4GiB. Raises BadUsage."""
    return _constraint(f"{Metric.MEMORY_CPU}<{text}").limit


def value_text(metric: Metric, value: float) -> str:
    """Return a value with its unit for a reader: 19.5 ms."""
    match metric.kind:
        case "time":
            return _scaled(value, (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)))
        case "size":
            return _scaled(value, (("GiB", 2.0**30), ("MiB", 2.0**20), ("KiB", 2.0**10), ("B", 1)))
        case "share":
            return f"{value:.2%}"
    return f"{value:,.1f}/s" if value < 100 else f"{value:,.0f}/s"


def _scaled(value: float, units: Sequence[tuple[str, float]]) -> str:
    name, size = next((each for each in units if value >= each[1]), units[-1])
    return f"{value / size:.3g} {name}"


def latency_value(metric: Metric, histogram: LatencyHistogram) -> float:
    """Return a latency metric of a histogram in seconds."""
    percentile = metric.percentile
    value = histogram.mean if percentile is None else histogram.percentile(percentile)
    return value / 1e9
