"""The interface of runners, which execute the instances of a model version."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING

from tritonpy.api.backend import InstanceContext
from tritonpy.api.engine import MemoryUsage
from tritonpy.types import InferRequest

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelInstanceGroup

READINESS_LIMIT_S = 5.0  # how long a readiness check may take before the model counts as not ready


NewInstance = tuple[InstanceContext, "ModelInstanceGroup"]


class Runner(ABC):
    """Starts, feeds and ends the instances of one model version, known by their indexes.

    `add` and `serve` are called for new instances, `remove` for instances to end, and `stop` once,
    even after an `add` that raised. These methods block, and `stop` may overlap another one. All
    other methods may be called from any thread.
    """

    @abstractmethod
    def add(self, new_instances: Sequence[NewInstance]) -> None:
        """Build further instances; return when all can execute, though none accepts requests yet.

        Raises the error of the first failing instance; none of them is left then.
        """

    @abstractmethod
    def serve(self, indexes: Collection[int]) -> None:
        """Let added instances accept requests; passive ones never do."""

    @abstractmethod
    def remove(self, indexes: Collection[int]) -> list[Future[None]]:
        """Drain instances; return a future of the end of each.

        The scheduler has already removed them. Instances that never served end immediately.
        """

    @abstractmethod
    def stop(self) -> None:
        """End every instance after its current execution, and free what they share."""

    @abstractmethod
    def alive(self) -> bool:
        """Return whether all instances are alive; runs no code of the model and never blocks."""

    @abstractmethod
    def is_ready(self) -> bool:
        """Return whether the model is ready according to all its instances.

        Takes at most `READINESS_LIMIT_S`; the result is False afterwards. It is also False if a
        check raises, and the error is logged.
        """

    def memory_usage(self) -> Sequence[MemoryUsage]:
        """Return the known memory usage, one entry per kind and device; never blocks (optional)."""
        return ()

    def measure_memory(self) -> None:
        """Measure the memory usage, because the instances have changed (optional)."""

    def cancelled(self, request: InferRequest) -> None:
        """Handle the cancellation of `request`, which an instance has taken (optional).

        It may come before the instance begins with the request, or just after its response. An
        instance in this process needs no message: it checks `request.cancelled`.
        """
