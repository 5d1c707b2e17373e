"""Shares without dice: points that fill the line from 0 to 1 evenly, so that a share holds after few requests too."""

from __future__ import annotations

GOLDEN = 0.6180339887498949  # (sqrt(5) - 1) / 2, the number hardest to approach by fractions
SQUARE_ROOT_OF_2 = 0.41421356237309515  # its fraction: points of two spreads must not go together
SQUARE_ROOT_OF_3 = 0.7320508075688772


class Spread:
    """The multiples of an irrational number without their whole part: of n points about share * n lie below `share`. Not thread-safe."""

    def __init__(self, increment: float) -> None:
        self._increment = increment
        self._point = 0.5

    def next(self) -> float:
        """Return the next point, at least 0 and less than 1."""
        self._point = (self._point + self._increment) % 1.0
        return self._point
