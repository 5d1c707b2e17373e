"""Histograms of durations in bounded memory.

Bucket widths grow with the values, so that every percentile is accurate to a thousandth.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

# Values below 2 * 1024 ns have a bucket each. Above, every power of two has 1024 buckets.
_BITS = 10
_FINE = 1 << (_BITS + 1)
MAX_NS = (1 << 42) - 1
"""The longest recorded duration (73 minutes); longer ones are recorded as this value."""


class LatencyHistogram(msgspec.Struct, frozen=True):
    """Durations (ns) per bucket; `total`, `sum`, `least` and `most` are exact.

    There are at most 33,792 buckets. Empty ones are not stored.
    """

    buckets: dict[int, int] = {}
    total: int = 0
    sum: int = 0
    least: int = MAX_NS
    most: int = 0

    @property
    def mean(self) -> float:
        """The mean in ns; 0 if the histogram is empty."""
        return self.sum / self.total if self.total else 0.0

    def percentile(self, percent: float) -> float:
        """Return the percentile (0 to 100) in ns; 0 if the histogram is empty."""
        return self.percentiles([percent])[0]

    def percentiles(self, percents: Sequence[float]) -> list[float]:
        """Return several percentiles in ns; `percents` must be in ascending order."""
        found: list[float] = []
        passed = 0
        buckets = iter(sorted(self.buckets.items()))
        index = 0
        for percent in percents:
            rank = max(math.ceil(percent / 100 * self.total), 1)
            while passed < rank and self.total:
                index, count = next(buckets)
                passed += count
            found.append(
                float(min(max(bucket_middle(index), self.least), self.most)) if self.total else 0.0
            )
        return found

    def count_above(self, ns: float) -> int:
        """Return how many durations are longer than `ns`, to the accuracy of a bucket."""
        return sum(count for index, count in self.buckets.items() if bucket_middle(index) > ns)


def make_histogram(values: Iterable[int] | npt.NDArray[np.int64]) -> LatencyHistogram:
    """Return the histogram of durations in ns; negative ones count as 0."""
    array = values if isinstance(values, np.ndarray) else np.fromiter(values, np.int64)
    if not array.size:
        return LatencyHistogram()
    array = np.clip(array, 0, MAX_NS)
    indexes, counts = np.unique(_indexes(array), return_counts=True)
    buckets = dict(zip(indexes.tolist(), counts.tolist(), strict=True))
    return LatencyHistogram(
        buckets, int(array.size), int(array.sum()), int(array.min()), int(array.max())
    )


def merge(parts: Iterable[LatencyHistogram]) -> LatencyHistogram:
    """Return the sum of several histograms."""
    whole: dict[int, int] = {}
    some = [part for part in parts if part.total]
    for part in some:
        for index, count in part.buckets.items():
            whole[index] = whole.get(index, 0) + count
    return LatencyHistogram(
        whole,
        sum(part.total for part in some),
        sum(part.sum for part in some),
        min((part.least for part in some), default=MAX_NS),
        max((part.most for part in some), default=0),
    )


def bucket_middle(index: int) -> int:
    """Return the middle of a bucket in ns."""
    if index < _FINE:
        return index
    shift = (index >> _BITS) - 1
    return ((index - (shift << _BITS)) << shift) + (1 << shift >> 1)


def _indexes(values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    lengths = np.frexp(values.astype(np.float64))[1].astype(np.int64)
    shifts = np.maximum(lengths - (_BITS + 1), 0)
    return (shifts << _BITS) + (values >> shifts)
