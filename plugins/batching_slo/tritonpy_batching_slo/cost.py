"""What a batch costs, learnt from those that ran: a + b * rows, and how far above that the slow ones are."""

from __future__ import annotations

from tritonpy_batching_slo.quantile import Quantile

_MEMORY = 0.98  # of a batch's weight when the next one comes: the last fifty count
_ASSUMED = 1.0  # batches that say that half of a cost is fixed: what counts while all have one size
_BELIEVED = 4.0  # typical errors: a batch further off is taken for one that is so far off
_JUMP = 4  # batches in a row that are far off to the same side: the costs are other ones
_LEAST_ERROR, _MOST_TAIL = 0.01, 3.0
ANY_ROWS = 1 << 31


class CostModel:
    """A straight line through (rows, ns) that forgets slowly, and quickly where the costs jump. Neither of its parts is negative.

    Until something was learnt every cost is 0.
    """

    def __init__(self) -> None:
        self.fixed_ns = 0.0
        self.row_ns = 0.0
        self._tail = Quantile(0.99, 0.02, 1.0)
        self._error = 0.25  # typical, relative
        self._off = 0  # batches in a row that are far off, negative where they were too quick
        self._weight = self._rows = self._squares = self._costs = self._products = 0.0

    @property
    def tail(self) -> float:
        """How many times the cost of a batch of that size a slow one costs."""
        return self._tail.value

    def cost(self, rows: int) -> float:
        """Return what a batch of that size costs on average, in ns."""
        return self.fixed_ns + self.row_ns * rows

    def slow(self, rows: int) -> float:
        """Return what of a hundred such batches all but one cost at most, in ns."""
        return self.tail * self.cost(rows)

    def rows_costing(self, cost_ns: float) -> int:
        """Return how many rows a batch may have to cost at most `cost_ns`, not less than 1."""
        left = cost_ns - self.fixed_ns
        if left <= 0:
            return 1
        return max(1, int(left / self.row_ns)) if left < ANY_ROWS * self.row_ns else ANY_ROWS

    def learn(self, rows: int, cost_ns: float) -> None:
        """Take note that a batch of `rows` took `cost_ns`."""
        expected = self.cost(rows)
        if expected > 0:
            cost_ns = expected * (1 + self._believed(cost_ns / expected - 1))
        self._add(rows, max(cost_ns, 1.0))
        self._fit()

    def _believed(self, error: float) -> float:
        """Return the relative error of the line that is to be learnt from."""
        self._tail.learn(min(max(1 + error, 1.0), _MOST_TAIL))
        limit = _BELIEVED * self._error
        self._error += 0.1 * (min(abs(error), limit) - self._error)
        self._error = max(self._error, _LEAST_ERROR)
        side = 0 if abs(error) <= limit else 1 if error > 0 else -1
        self._off = self._off + side if side * self._off > 0 else side
        if abs(self._off) >= _JUMP:
            self._jump(1 + error)
            return error
        return min(max(error, -limit), limit)

    def _jump(self, factor: float) -> None:
        """Hold the line for one that is as much higher as the last batch, and nearly forget what it was learnt from."""
        self._off = 0
        self._costs *= factor
        self._products *= factor
        self._fade(1 - _MEMORY)

    def _fade(self, share: float) -> None:
        self._weight *= share
        self._rows *= share
        self._squares *= share
        self._costs *= share
        self._products *= share

    def _add(self, rows: int, cost_ns: float) -> None:
        self._fade(_MEMORY)
        self._weight += 1
        self._rows += rows
        self._squares += rows * rows
        self._costs += cost_ns
        self._products += rows * cost_ns

    def _fit(self) -> None:
        rows, cost_ns = self._rows / self._weight, self._costs / self._weight
        spread = self._squares / self._weight - rows * rows
        together = self._products / self._weight - rows * cost_ns
        assumed = _ASSUMED * rows * rows / self._weight
        slope = (together + assumed * cost_ns / (2 * rows)) / (spread + assumed)
        self.row_ns = min(max(slope, 0.0), cost_ns / rows)
        self.fixed_ns = max(cost_ns - self.row_ns * rows, 0.0)  # the difference of two equal floats may be less
