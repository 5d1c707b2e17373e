"""Deterministic low-discrepancy points in [0, 1), so that shares hold after few requests."""

from __future__ import annotations

GOLDEN = 0.6180339887498949  # the number that is hardest to approximate by fractions
# The fractional parts of two square roots. Sequences with different increments are independent.
SQUARE_ROOT_OF_2 = 0.41421356237309515
SQUARE_ROOT_OF_3 = 0.7320508075688772


class LowDiscrepancySequence:
    """The fractional parts of the multiples of an irrational number.

    Of n points, about share * n are below `share`. Not thread-safe.
    """

    def __init__(self, increment: float) -> None:
        self._increment = increment
        self._point = 0.5

    def next(self) -> float:
        """Return the next point, at least 0 and less than 1."""
        self._point = (self._point + self._increment) % 1.0
        return self._point
