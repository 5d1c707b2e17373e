"""Exponential backoff between attempts. Pure, except for the random jitter."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RetryBackoff:
    """Delays that double from `first_s` up to `longest_s`."""

    first_s: float
    longest_s: float

    def delay_s(self, failures: int) -> float:
        """Return the delay in seconds after `failures` (at least 1) consecutive failures."""
        return float(min(self.first_s * 2 ** min(failures - 1, 30), self.longest_s))

    def jittered_delay_s(self, failures: int) -> float:
        """Return the delay, randomly reduced by up to half.

        The jitter keeps concurrent clients from retrying together.
        """
        return self.delay_s(failures) * random.uniform(0.5, 1.0)  # noqa: S311
