"""The memory of a load: its reservation, the deadline of its wait for memory, and its error."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from tritonpy_types.errors import Unavailable


class InsufficientCapacity(Unavailable):
    """A load needs more memory than there is, or than can be freed now."""


@dataclass(frozen=True, slots=True)
class LoadDeadline:
    """Ends the wait of a load after `wait_s` seconds, or once `is_needed()` is false.

    The models in `waiting_models()` wait for the load and cannot be evicted for it. `report` is
    called with the reason why the load waits.
    """

    wait_s: float
    is_needed: Callable[[], bool]
    waiting_models: Callable[[], Collection[str]]
    report: Callable[[str], None]
    since: float = field(default_factory=time.monotonic)

    @property
    def is_over(self) -> bool:
        """Whether the load must stop waiting."""
        return time.monotonic() - self.since > self.wait_s or not self.is_needed()

    @property
    def is_urgent(self) -> bool:
        """Whether the load has waited so long that no other load may overtake it."""
        return time.monotonic() - self.since > self.wait_s / 4


class MemoryReservation(ABC):
    """The memory that one load of a model holds or is about to hold."""

    __slots__ = ()

    @abstractmethod
    def begin_unload(self) -> None:
        """Record that the model is being unloaded."""

    @abstractmethod
    def versions_unloaded(self) -> None:
        """Record that versions which were being unloaded are gone."""

    @abstractmethod
    def close(self) -> None:
        """Release the reservation; may be called twice."""
