"""How much and for how long a connection may ask."""

from __future__ import annotations

from typing import NamedTuple


class Limits(NamedTuple):
    """Times in seconds, sizes in bytes. `body_s` is how long a body, or a client that reads its answer, may stand still."""

    idle_s: float = 75
    head_s: float = 60
    body_s: float = 300
    head_size: int = 64 * 1024
    headers: int = 1000
    connections: int = 0  # 0 for any number

    @property
    def period_s(self) -> float:
        """How often one has to look, so that nothing that is over is seen late."""
        return max(min(self.idle_s, self.head_s, self.body_s), _SOONEST_S)


_SOONEST_S = 0.01  # an event loop's clock has milliseconds
