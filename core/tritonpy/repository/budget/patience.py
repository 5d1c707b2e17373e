"""How long a load waits for room, and for whom."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Patience:
    """Waits for `wait_s`, as long as it is `wanted`. Models in `held` wait for the load themselves: they cannot make room for it.

    `tell` takes what stands against the load now.
    """

    wait_s: float
    wanted: Callable[[], bool]
    held: Callable[[], Collection[str]]
    tell: Callable[[str], None]
    since: float = field(default_factory=time.monotonic)

    @property
    def over(self) -> bool:
        """Whether it has waited for long enough, or in vain."""
        return time.monotonic() - self.since > self.wait_s or not self.wanted()

    @property
    def short(self) -> bool:
        """Whether it has waited for so long that nobody may overtake it any more."""
        return time.monotonic() - self.since > self.wait_s / 4
