"""Quantiles of a stream of values in little memory.

Each quantile has an error of its own: asked for 0.9 with error 0.01, the answer is a value that stands between 0.89 and 0.91 of all values in order
(Cormode, Korn, Muthukrishnan, Srivastava: Effective Computation of Biased Quantiles over Data Streams, 2005).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tritonpy.config.server.latency_settings import Quantiles

# A value, how many places it is above the sample before it at least, and how many more it may be.
_Sample = tuple[float, int, int]


class Sketch:
    """A sample of the values, in order, dense where a quantile was asked for. `targets` are errors by quantile, all between 0 and 1."""

    def __init__(self, targets: Quantiles) -> None:
        self.count = 0
        self._targets = tuple(targets.items())
        self._samples: list[_Sample] = []

    @property
    def size(self) -> int:
        """How many values are kept."""
        return len(self._samples)

    def add(self, ascending: Sequence[float]) -> None:
        """Take in values that ascend; many at once are cheaper than one at a time."""
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
        self._samples = self._thinned(merged)

    def quantile(self, quantile: float) -> float | None:
        """Return the value at `quantile`, None when there are no values."""
        if not self._samples:
            return None
        place = math.ceil(quantile * self.count)
        highest_allowed = place + float(self._tolerances(np.array([place]))[0]) / 2
        found, lowest = self._samples[0][0], 0
        for value, gap, slack in self._samples:
            lowest += gap
            if lowest + slack > highest_allowed:
                break
            found = value
        return found

    def _thinned(self, samples: list[_Sample]) -> list[_Sample]:
        if len(samples) < 3:
            return samples
        gaps = np.array([gap for _, gap, _ in samples])
        tolerances = self._tolerances(gaps.cumsum() - gaps).tolist()
        kept = [samples[-1]]  # the largest and the smallest stay: their places are known
        for index in range(len(samples) - 2, 0, -1):
            value, gap, slack = samples[index]
            larger, its_gap, its_slack = kept[-1]
            if gap + its_gap + its_slack <= tolerances[index]:
                kept[-1] = (larger, gap + its_gap, its_slack)
            else:
                kept.append((value, gap, slack))
        kept.append(samples[0])
        kept.reverse()
        return kept

    def _tolerances(self, places: NDArray[np.int64]) -> NDArray[np.float64]:
        """How many places two neighbours in the sample may be apart at each place, so that no quantile errs by more than it may."""
        count = self.count
        lowest = np.full(places.shape, np.inf)
        for quantile, error in self._targets:
            below, above = (count - places) * (2 * error / (1 - quantile)), places * (2 * error / quantile)
            np.minimum(lowest, np.where(places < quantile * count, below, above), out=lowest)
        return lowest
