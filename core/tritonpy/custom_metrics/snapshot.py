"""What the custom metrics were at one moment, as plain values."""

from __future__ import annotations

import msgspec

from tritonpy.custom_metrics.kind import MetricKind


class HistogramSnapshot(msgspec.Struct, frozen=True):
    """What a histogram saw: `counts[i]` observations were at most `bounds[i]`; `count` is all of them, `sum` their sum."""

    bounds: list[float]
    counts: list[int]
    count: int
    sum: float


class MetricSnapshot(msgspec.Struct, frozen=True):
    """One metric; a histogram has its content in `histogram` and no `value`. `labels` are in alphabetical order."""

    labels: dict[str, str]
    value: float = 0.0
    histogram: HistogramSnapshot | None = None


class FamilySnapshot(msgspec.Struct, frozen=True):
    """The metrics of one name, in the order in which they were made; never empty."""

    name: str
    description: str
    kind: MetricKind
    metrics: list[MetricSnapshot]
