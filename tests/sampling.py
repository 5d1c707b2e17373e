"""Random samples of long tests: each test has the same chance, by a seed that is printed."""

from __future__ import annotations

import os
from dataclasses import dataclass
from random import Random, SystemRandom


@dataclass(frozen=True)
class Sampling:
    """Selects `share` (0 to 1) of the things of a kind; the same `seed` selects the same.

    The environment variables are TRITONPY_<KIND>_SHARE and TRITONPY_<KIND>_SEED.
    """

    kind: str
    share: float = 1.0
    seed: int = 0

    @classmethod
    def of_environment(cls, kind: str) -> Sampling:
        """Return the sampling of both environment variables: by default everything and a new seed.

        Raises ValueError for a share outside of 0 to 1.
        """
        prefix = f"TRITONPY_{kind.upper()}"
        share = float(os.environ.get(f"{prefix}_SHARE", "1"))
        if not 0 <= share <= 1:
            raise ValueError(f"{prefix}_SHARE is a share, from 0 to 1, not {share}")
        return cls(
            kind, share, int(os.environ.get(f"{prefix}_SEED", SystemRandom().randrange(1 << 32)))
        )

    def takes(self, name: str) -> bool:
        """Return whether the thing of that name is selected, independently of the others."""
        return Random(f"{self.seed} {name}").random() < self.share

    def described(self, taken: int, total: int, what: str) -> str:
        """Return the number of selected things and the variables that repeat the selection."""
        prefix = f"TRITONPY_{self.kind.upper()}"
        return f"{self.kind}: {taken} of {total} {what}, {prefix}_SHARE={self.share:g} {prefix}_SEED={self.seed}"
