"""Latency histogram with buckets that grow by an eighth of an octave."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate

_BOUNDS_NS = [round(1000 * 2 ** (step / 8)) for step in range(8 * 32)]  # 1 µs to more than an hour
_EXPORTED = 8  # every eighth bound is exported: 1 µs, 2 µs, 4 µs …


class Latencies:
    """A latency histogram.

    Up to an hour, its quantiles are at most 9 % too high. Not thread-safe.
    """

    __slots__ = ("count", "counts", "sum_ns")

    def __init__(self) -> None:
        self.counts = [0] * (len(_BOUNDS_NS) + 1)
        self.count = 0
        self.sum_ns = 0

    def add(self, ns: int) -> None:
        """Record one latency."""
        self.counts[bisect_left(_BOUNDS_NS, ns)] += 1
        self.count += 1
        self.sum_ns += ns

    def above(self, ns: float) -> int:
        """Return how many latencies are certainly greater than `ns`.

        These are the ones in the buckets after that of `ns`.
        """
        return sum(self.counts[bisect_left(_BOUNDS_NS, ns) + 1 :])

    def quantile(self, share: float) -> int:
        """Return a latency in ns that a `share` of the latencies do not exceed; 0 without data."""
        for bound, below in self.bounds():
            if below and below >= share * self.count:
                return bound
        return 0

    def bounds(self) -> list[tuple[int, int]]:
        """Return each bound (ns) with the number of latencies up to it."""
        return list(zip([*_BOUNDS_NS, 2 * _BOUNDS_NS[-1]], accumulate(self.counts), strict=True))

    def exported(self) -> tuple[list[float], list[int]]:
        """Return the exported bounds in seconds, and the number of latencies up to each."""
        exported = self.bounds()[: len(_BOUNDS_NS) : _EXPORTED]
        return [bound / 1e9 for bound, _ in exported], [below for _, below in exported]
