"""Batch cost model: `a + b * rows`, fitted to executed batches, and its 99th percentile."""

from __future__ import annotations

from tritonpy_batching_slo.quantile import Quantile

_MEMORY = 0.98  # weight decay per batch: about the last fifty batches count
# Weight of the prior that half of a cost is fixed. It decides while all batches have one size.
_PRIOR_WEIGHT = 1.0
_OUTLIER_ERRORS = 4.0  # limit of an error, in typical errors
_OUTLIERS_BEFORE_JUMP = 4  # consecutive outliers in one direction that reset the model
_MIN_ERROR, _MAX_TAIL = 0.01, 3.0
UNLIMITED_ROWS = 1 << 31


class CostModel:
    """A line through (rows, ns) with non-negative parameters and exponential decay.

    Consecutive outliers in one direction rescale it quickly. Every cost is 0 until the first batch.
    """

    def __init__(self) -> None:
        self.fixed_ns = 0.0
        self.row_ns = 0.0
        self._tail = Quantile(0.99, 0.02, 1.0)
        self._error = 0.25  # typical relative error
        self._outliers = 0  # consecutive outliers, negative if they were too fast
        self._weight = self._rows = self._squares = self._costs = self._products = 0.0

    @property
    def tail(self) -> float:
        """99th percentile of a batch's cost, relative to the mean."""
        return self._tail.value

    def cost(self, rows: int) -> float:
        """Return the mean cost of a batch of `rows`, in ns."""
        return self.fixed_ns + self.row_ns * rows

    def tail_cost(self, rows: int) -> float:
        """Return the 99th percentile of the cost of a batch of `rows`, in ns."""
        return self.tail * self.cost(rows)

    def max_rows(self, cost_ns: float) -> int:
        """Return the largest number of rows that costs at most `cost_ns`, at least 1."""
        left = cost_ns - self.fixed_ns
        if left <= 0:
            return 1
        return (
            max(1, int(left / self.row_ns))
            if left < UNLIMITED_ROWS * self.row_ns
            else UNLIMITED_ROWS
        )

    def learn(self, rows: int, cost_ns: float) -> None:
        """Record that a batch of `rows` took `cost_ns`."""
        expected = self.cost(rows)
        if expected > 0:
            cost_ns = expected * (1 + self._clip_error(cost_ns / expected - 1))
        self._add(rows, max(cost_ns, 1.0))
        self._fit()

    def _clip_error(self, error: float) -> float:
        """Return the relative error to learn from, after clipping."""
        self._tail.learn(min(max(1 + error, 1.0), _MAX_TAIL))
        limit = _OUTLIER_ERRORS * self._error
        self._error += 0.1 * (min(abs(error), limit) - self._error)
        self._error = max(self._error, _MIN_ERROR)
        side = 0 if abs(error) <= limit else 1 if error > 0 else -1
        self._outliers = self._outliers + side if side * self._outliers > 0 else side
        if abs(self._outliers) >= _OUTLIERS_BEFORE_JUMP:
            self._rescale(1 + error)
            return error
        return min(max(error, -limit), limit)

    def _rescale(self, factor: float) -> None:
        """Scale the line by `factor` and discard most of the history."""
        self._outliers = 0
        self._costs *= factor
        self._products *= factor
        self._decay(1 - _MEMORY)

    def _decay(self, share: float) -> None:
        self._weight *= share
        self._rows *= share
        self._squares *= share
        self._costs *= share
        self._products *= share

    def _add(self, rows: int, cost_ns: float) -> None:
        self._decay(_MEMORY)
        self._weight += 1
        self._rows += rows
        self._squares += rows * rows
        self._costs += cost_ns
        self._products += rows * cost_ns

    def _fit(self) -> None:
        rows, cost_ns = self._rows / self._weight, self._costs / self._weight
        variance = self._squares / self._weight - rows * rows
        covariance = self._products / self._weight - rows * cost_ns
        prior = _PRIOR_WEIGHT * rows * rows / self._weight
        slope = (covariance + prior * cost_ns / (2 * rows)) / (variance + prior)
        self.row_ns = min(max(slope, 0.0), cost_ns / rows)
        self.fixed_ns = max(cost_ns - self.row_ns * rows, 0.0)  # rounding may make it negative
