"""The state of custom metrics at a point in time, as plain values."""

from __future__ import annotations

import msgspec

from tritonpy.custom_metrics.kind import MetricKind


class HistogramSnapshot(msgspec.Struct, frozen=True):
    """The state of a histogram: `counts[i]` observations were at most `bounds[i]`.

    `count` is the number of all observations, `sum` is their sum.
    """

    bounds: list[float]
    counts: list[int]
    count: int
    sum: float


class MetricSnapshot(msgspec.Struct, frozen=True):
    """One metric; `labels` are sorted by name.

    A histogram has its state in `histogram` and no `value`.
    """

    labels: dict[str, str]
    value: float = 0.0
    histogram: HistogramSnapshot | None = None


class FamilySnapshot(msgspec.Struct, frozen=True):
    """The metrics of one name, in the order of their creation; never empty."""

    name: str
    description: str
    kind: MetricKind
    metrics: list[MetricSnapshot]
