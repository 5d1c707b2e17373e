"""The memory budget as loads use it: the deadline of a load, its error, and its reservation."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tritonpy.errors import Unavailable

if TYPE_CHECKING:
    from tritonpy.model.loaded_model import LoadedModel
    from tritonpy.repository.prepared_model import PreparedModel


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


class MemoryBudget(ABC):
    """Reserves memory before each load, and corrects the reservation after it."""

    @abstractmethod
    def reserve(self, prepared: PreparedModel, deadline: LoadDeadline | None) -> None:
        """Set `prepared.reservation`, waiting for memory until `deadline`.

        Without a deadline it does not wait for models in use. Raises `InsufficientCapacity`, or
        `InvalidArgument` for an invalid declaration of memory.
        """

    @abstractmethod
    def settle(self, prepared: PreparedModel, models: Collection[LoadedModel]) -> None:
        """Adjust the reservation to the size of the loaded `models`.

        Raises `InsufficientCapacity` if that does not fit; the load is then undone.
        """

    @abstractmethod
    def keep_versions(self, prepared: PreparedModel, models: Collection[LoadedModel]) -> None:
        """Record that only `models` of the versions of `prepared` keep serving."""

    @abstractmethod
    def grow(self, prepared: PreparedModel, models: Collection[LoadedModel]) -> None:
        """Adjust the reservation after serving models got more instances.

        Raises `InsufficientCapacity` if that does not fit; the previous reservation is then restored.
        """
