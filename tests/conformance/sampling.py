"""Which exchanges a run takes, where it has no time for all: each with the same chance, by a seed that is printed."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from random import Random, SystemRandom

SHARE_VARIABLE = "TRITONPY_CONFORMANCE_SHARE"
SEED_VARIABLE = "TRITONPY_CONFORMANCE_SEED"


@dataclass(frozen=True)
class Sampling:
    """Takes `share` (0 to 1) of what it is asked about; the same `seed` takes the same."""

    share: float = 1.0
    seed: int = 0

    @classmethod
    def of_environment(cls) -> Sampling:
        """Read both variables: all exchanges where no share is set, a new seed where none is. Raises ValueError for a share beyond 0 to 1."""
        share = float(os.environ.get(SHARE_VARIABLE, "1"))
        if not 0 <= share <= 1:
            raise ValueError(f"{SHARE_VARIABLE} is a share, from 0 to 1, not {share}")
        return cls(share, int(os.environ.get(SEED_VARIABLE, SystemRandom().randrange(1 << 32))))

    def takes(self, name: str) -> bool:
        """Say whether the exchange of that name takes part; it does not depend on which others there are."""
        return Random(f"{self.seed} {name}").random() < self.share

    def described(self, taken: int, names: Iterable[str]) -> str:
        """Return a line that says how many took part, and how to repeat that."""
        total = len(list(names))
        return f"conformance: {taken} of {total} exchanges, {SHARE_VARIABLE}={self.share:g} {SEED_VARIABLE}={self.seed}"
