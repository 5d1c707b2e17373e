"""How long to wait between two attempts. Pure, but for the dice."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pauses:
    """Each pause is twice the one before, from `first_s` up to `longest_s`."""

    first_s: float
    longest_s: float

    def after(self, failures: int) -> float:
        """Return the seconds to wait after so many failures in a row, one at least."""
        return float(min(self.first_s * 2 ** min(failures - 1, 30), self.longest_s))

    def spread_after(self, failures: int) -> float:
        """Return the same, up to a half of it less: those who failed together do not come back together."""
        return self.after(failures) * random.uniform(0.5, 1.0)  # noqa: S311
