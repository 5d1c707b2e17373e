"""The interface of residency policies, which decide which models are in memory, and until when.

Classes are registered by the hook `tritonpy_residency_policies`. The core chooses the lazy models,
loads them when the policy calls for it, and unloads them when the policy evicts them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tritonpy.api.operation import Operation, OperationHandler
    from tritonpy.config.server.sections import MemorySettings
    from tritonpy.custom_metrics import CustomMetrics
    from tritonpy.model.loaded_model import LoadedModel
    from tritonpy.repository.ensemble_reconciler import EnsembleReconciler
    from tritonpy.repository.memory_budget import LoadDeadline, MemoryBudget
    from tritonpy.repository.model_loader import ModelLoader
    from tritonpy.repository.model_table import LazyListing, ModelTable
    from tritonpy.runners.timer import Timer
    from tritonpy.types import InferRequest


@dataclass(frozen=True, slots=True)
class ResidencyContext:
    """What a policy gets from the server.

    `settings` are those of `memory:` in server.yaml. `threads` is the number of concurrent loads.
    `load(key, name, override, deadline)` loads a lazy model with its members, and raises a
    `TritonError` if it does not serve afterwards: `InsufficientCapacity` if memory is missing.
    `override` is the configuration that the policy got in `add`. `unload_if_idle(key)` unloads a
    model unless it is in use, and returns whether it did; it never waits.
    """

    settings: MemorySettings
    table: ModelTable
    loader: ModelLoader
    ensembles: EnsembleReconciler
    metrics: CustomMetrics
    timer: Timer
    threads: int
    load: Callable[[str, str, str | None, LoadDeadline], None]
    unload_if_idle: Callable[[str], bool]


class ResidencyPolicy(ABC):
    """Holds requests for lazy models, loads these, and evicts idle ones; a server has one at most.

    A policy is created with the first lazy model, or at the start if server.yaml has a section
    `memory:`. A lazy model is listed with `context.table.add_lazy` until `remove`. Keys are
    qualified names. `memory` is the budget for the loads of all models, or None without limits.

    The methods are called from any thread. `hold` is called on the event loop and must not block.
    """

    memory: MemoryBudget | None = None

    @abstractmethod
    def __init__(self, context: ResidencyContext) -> None:
        """Create the policy of one server; nothing is loaded yet."""

    @abstractmethod
    def add(
        self, key: str, name: str, listing: LazyListing, fingerprint: str, pinned: bool, override: str | None
    ) -> None:
        """List the lazy model `key`, or update its listing.

        `fingerprint` identifies its files. A `pinned` model is never evicted. `override` is a
        configuration that a client gave instead of the one on disk.
        """

    @abstractmethod
    def remove(self, keys: Iterable[str]) -> None:
        """Forget these models, and reject the requests that wait for them. Ignores unknown keys."""

    @abstractmethod
    def keys(self) -> list[str]:
        """Return all lazy models, sorted."""

    @abstractmethod
    def fingerprint(self, key: str) -> str | None:
        """Return the fingerprint of a lazy model, or None if the model is not lazy."""

    @abstractmethod
    def unloaded(self, model: LoadedModel) -> None:
        """Record that a version of any model was unloaded."""

    @abstractmethod
    def hold(self, request: InferRequest) -> bool:
        """Own `request` until its model is loaded; False if the model is not lazy.

        Raises `Unavailable` if the request is not to wait.
        """

    @abstractmethod
    def start_load(self, name: str) -> None:
        """Start to load the model `name` without a request for it."""

    @abstractmethod
    def handover(self, key: str, models: Mapping[int, LoadedModel]) -> AbstractContextManager[None]:
        """Pass waiting requests to `models`, then run the block, which adds them to the table."""

    @abstractmethod
    def operations(self) -> Mapping[Operation, OperationHandler]:
        """Return the management operations of the policy, such as a report."""

    @abstractmethod
    def stop(self) -> None:
        """Load nothing more, and reject waiting requests."""

    @abstractmethod
    def close(self) -> None:
        """End all threads, after `stop`."""
