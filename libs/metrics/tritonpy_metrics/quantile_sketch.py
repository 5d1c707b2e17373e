"""Quantiles of a stream of values in little memory.

Each quantile has its own error: for 0.9 with error 0.01, the result ranks between 0.89 and 0.91 of
all values (Cormode, Korn, Muthukrishnan, Srivastava: Effective Computation of Biased Quantiles over
Data Streams, 2005).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tritonpy_config.server.sections import Quantiles

# A value, its minimum rank distance to the previous sample, and by how much its rank may exceed
# that.
_Sample = tuple[float, int, int]


class QuantileSketch:
    """A sorted sample of the values, dense around the target quantiles.

    `targets` maps quantiles to errors, all between 0 and 1.
    """

    def __init__(self, targets: Quantiles) -> None:
        self.count = 0
        self._targets = tuple(targets.items())
        self._samples: list[_Sample] = []

    @property
    def size(self) -> int:
        """The number of stored samples."""
        return len(self._samples)

    def add(self, ascending: Sequence[float]) -> None:
        """Add values in ascending order. Adding many at once is cheaper."""
        merged: list[_Sample] = []
        at, end = 0, len(ascending)
        for sample in self._samples:
            value, gap, slack = sample
            while at < end and ascending[at] < value:
                merged.append((ascending[at], 1, gap + slack - 1))
                at += 1
            merged.append(sample)
        merged.extend([(value, 1, 0) for value in ascending[at:]])
        self.count += end
        self._samples = self._compress(merged)

    def quantile(self, quantile: float) -> float | None:
        """Return the value at `quantile`, None without values."""
        if not self._samples:
            return None
        rank = math.ceil(quantile * self.count)
        highest_allowed = rank + float(self._tolerances(np.array([rank]))[0]) / 2
        found, lowest = self._samples[0][0], 0
        for value, gap, slack in self._samples:
            lowest += gap
            if lowest + slack > highest_allowed:
                break
            found = value
        return found

    def _compress(self, samples: list[_Sample]) -> list[_Sample]:
        if len(samples) < 3:
            return samples
        gaps = np.array([gap for _, gap, _ in samples])
        tolerances = self._tolerances(gaps.cumsum() - gaps).tolist()
        kept = [samples[-1]]  # keep the largest and the smallest, whose ranks are exact
        for index in range(len(samples) - 2, 0, -1):
            value, gap, slack = samples[index]
            larger, next_gap, next_slack = kept[-1]
            if gap + next_gap + next_slack <= tolerances[index]:
                kept[-1] = (larger, gap + next_gap, next_slack)
            else:
                kept.append((value, gap, slack))
        kept.append(samples[0])
        kept.reverse()
        return kept

    def _tolerances(self, ranks: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the allowed rank distance of adjacent samples at each rank.

        It keeps the error of every quantile within its bound.
        """
        count = self.count
        lowest = np.full(ranks.shape, np.inf)
        for quantile, error in self._targets:
            below, above = (
                (count - ranks) * (2 * error / (1 - quantile)),
                ranks * (2 * error / quantile),
            )
            np.minimum(lowest, np.where(ranks < quantile * count, below, above), out=lowest)
        return lowest
