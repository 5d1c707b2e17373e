"""The interface of residency policies, which decide which models are in memory, and until when.

Classes are registered by the hook `tritonpy_residency_policies`. The core chooses the lazy models,
loads them when the policy calls for it, and unloads them when the policy evicts them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tritonpy.api.engine import Operation
    from tritonpy.api.operation import OperationHandler
    from tritonpy.model.loaded_model import LoadedModel
    from tritonpy.repository.memory_reservation import LoadDeadline
    from tritonpy.repository.model_table import LazyListing, ModelTable
    from tritonpy.repository.prepared_model import PreparedModel
    from tritonpy.runners.timer import Timer
    from tritonpy_config.server.sections import MemorySettings
    from tritonpy_metrics import CustomMetrics
    from tritonpy_protos.model_config_pb2 import ModelConfig
    from tritonpy_types import InferRequest


class ModelPlacement(Protocol):
    """Where the instances of a model run, for an estimate of its memory before it is loaded."""

    def normalized(self, config: ModelConfig) -> ModelConfig:
        """Return `config` with all defaults written out, including those of its backend."""

    def in_processes(self, prepared: PreparedModel, config: ModelConfig, version: int) -> bool:
        """Return whether the instances of a version run in their own processes.

        Raises the error if that is not possible.
        """


class EnsembleMembers(Protocol):
    """The ensembles of a server, and the models that they need in memory."""

    def keys(self) -> list[str]:
        """Return all requested ensembles."""

    def members(self, key: str) -> list[str]:
        """Return the members of an ensemble; none for a model that is not an ensemble."""


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
    placement: ModelPlacement
    ensembles: EnsembleMembers
    metrics: CustomMetrics
    timer: Timer
    threads: int
    load: Callable[[str, str, str | None, LoadDeadline], None]
    unload_if_idle: Callable[[str], bool]


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

        Raises `InsufficientCapacity` if that does not fit; the previous reservation is then
        restored.
        """


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
        self,
        key: str,
        name: str,
        listing: LazyListing,
        fingerprint: str,
        pinned: bool,
        override: str | None,
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
