"""The values of metrics. Not thread-safe: callers hold the registry's lock."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import ClassVar

from tritonpy.custom_metrics.kind import MetricKind
from tritonpy.custom_metrics.snapshot import HistogramSnapshot, MetricSnapshot
from tritonpy.errors import InvalidArgument, Unsupported


class Cell(ABC):
    """The value of one metric; operations that its kind does not support raise Unsupported."""

    kind: ClassVar[MetricKind]

    def __init__(self) -> None:
        self.owners = 0

    def increment(self, value: float) -> None:
        """Add `value`."""
        raise self._unsupported("Increment")

    def set(self, value: float) -> None:
        """Replace the value."""
        raise self._unsupported("Set")

    def observe(self, value: float) -> None:
        """Count one observation."""
        raise self._unsupported("Observe")

    def value(self) -> float:
        """Return the value."""
        raise self._unsupported("Value")

    @abstractmethod
    def snapshot(self, labels: dict[str, str]) -> MetricSnapshot:
        """Return the current state as plain values."""

    def _unsupported(self, operation: str) -> Unsupported:
        return Unsupported(f"{self.kind.triton_name} does not support {operation}")


class _Number(Cell):
    """A metric that is one number."""

    def __init__(self) -> None:
        super().__init__()
        self._value = 0.0

    def increment(self, value: float) -> None:
        self._value += value

    def value(self) -> float:
        return self._value

    def snapshot(self, labels: dict[str, str]) -> MetricSnapshot:
        return MetricSnapshot(labels, self._value)


class Gauge(_Number):
    """A number that can increase and decrease."""

    kind = MetricKind.GAUGE

    def set(self, value: float) -> None:
        self._value = value


class Counter(_Number):
    """A number that can only increase."""

    kind = MetricKind.COUNTER

    def increment(self, value: float) -> None:
        if value < 0:
            raise InvalidArgument(
                f"{self.kind.triton_name} can only be incremented monotonically by non-negative values."
            )
        super().increment(value)


class Histogram(Cell):
    """Counts of observations by size.

    Raises InvalidArgument if `bounds` are not strictly ascending.
    """

    kind = MetricKind.HISTOGRAM

    def __init__(self, bounds: Sequence[float]) -> None:
        super().__init__()
        self._bounds = [float(bound) for bound in bounds]
        if any(map(math.isnan, self._bounds)) or any(low >= high for low, high in pairwise(self._bounds)):
            raise InvalidArgument("Bucket Boundaries must be strictly sorted")
        if self._bounds and self._bounds[-1] == math.inf:
            self._bounds.pop()  # every histogram ends with that bucket
        self._counts = [0] * (len(self._bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def snapshot(self, labels: dict[str, str]) -> MetricSnapshot:
        *counts, count = accumulate(self._counts)
        return MetricSnapshot(labels, histogram=HistogramSnapshot(list(self._bounds), counts, count, self._sum))


def make_cell(kind: MetricKind, buckets: Sequence[float] | None) -> Cell:
    """Return a new metric value. Raises InvalidArgument if `buckets` do not match the kind."""
    if kind is MetricKind.HISTOGRAM:
        if buckets is None:
            raise InvalidArgument("Bucket boundaries not found in Metric args.")
        return Histogram(buckets)
    if buckets is not None:
        raise InvalidArgument(f"Unexpected args found in {kind.value} Metric constructor.")
    return Counter() if kind is MetricKind.COUNTER else Gauge()
