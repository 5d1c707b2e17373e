"""A random sample of exchanges: each has the same chance, by a seed that is printed."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from random import Random, SystemRandom

SHARE_VARIABLE = "TRITONPY_CONFORMANCE_SHARE"
SEED_VARIABLE = "TRITONPY_CONFORMANCE_SEED"


@dataclass(frozen=True)
class Sampling:
    """Selects `share` (0 to 1) of the exchanges; the same `seed` selects the same."""

    share: float = 1.0
    seed: int = 0

    @classmethod
    def of_environment(cls) -> Sampling:
        """Return the sampling of both environment variables: by default everything and a new seed.

        Raises ValueError for a share outside of 0 to 1.
        """
        share = float(os.environ.get(SHARE_VARIABLE, "1"))
        if not 0 <= share <= 1:
            raise ValueError(f"{SHARE_VARIABLE} is a share, from 0 to 1, not {share}")
        return cls(share, int(os.environ.get(SEED_VARIABLE, SystemRandom().randrange(1 << 32))))

    def takes(self, name: str) -> bool:
        """Return whether the exchange of that name is selected, independently of the others."""
        return Random(f"{self.seed} {name}").random() < self.share

    def described(self, taken: int, names: Iterable[str]) -> str:
        """Return the number of selected exchanges and the variables that repeat the selection."""
        total = len(list(names))
        return f"conformance: {taken} of {total} exchanges, {SHARE_VARIABLE}={self.share:g} {SEED_VARIABLE}={self.seed}"
