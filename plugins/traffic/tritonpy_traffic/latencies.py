"""How long answers took, as counts in buckets that grow by an eighth of an octave."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate

_BOUNDS_NS = [round(1000 * 2 ** (step / 8)) for step in range(8 * 32)]  # 1 µs to an hour and more
_EXPORTED = 8  # every eighth bound is shown: 1 µs, 2 µs, 4 µs …


class Latencies:
    """A histogram; up to an hour, a quantile of it is at most 9 % too high. Not thread-safe."""

    __slots__ = ("count", "counts", "sum_ns")

    def __init__(self) -> None:
        self.counts = [0] * (len(_BOUNDS_NS) + 1)
        self.count = 0
        self.sum_ns = 0

    def add(self, ns: int) -> None:
        """Take note of one."""
        self.counts[bisect_left(_BOUNDS_NS, ns)] += 1
        self.count += 1
        self.sum_ns += ns

    def above(self, ns: float) -> int:
        """Return how many took certainly longer than `ns`: those of the buckets behind the one where it lies."""
        return sum(self.counts[bisect_left(_BOUNDS_NS, ns) + 1 :])

    def quantile(self, share: float) -> int:
        """Return a time, in ns, that `share` of them did not exceed; 0 where there are none."""
        for bound, below in self.bounds():
            if below and below >= share * self.count:
                return bound
        return 0

    def bounds(self) -> list[tuple[int, int]]:
        """Return each bound in ns with how many took at most that."""
        return list(zip([*_BOUNDS_NS, 2 * _BOUNDS_NS[-1]], accumulate(self.counts), strict=True))

    def exported(self) -> tuple[list[float], list[int]]:
        """Return the bounds in seconds that are shown, and how many took at most that."""
        shown = self.bounds()[: len(_BOUNDS_NS) : _EXPORTED]
        return [bound / 1e9 for bound, _ in shown], [below for _, below in shown]
