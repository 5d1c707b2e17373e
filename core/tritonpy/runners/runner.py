"""What a loaded model asks of whatever runs its instances."""

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

READINESS_LIMIT_S = 5.0  # how long a model may think about whether it is ready, before it is taken for not ready


Newcomer = tuple[InstanceContext, "ModelInstanceGroup"]


class Runner(ABC):
    """Starts, feeds and ends the instances of one model version. An instance is known by its index.

    Life: `add` and `serve`, whenever there are to be more instances, `remove` when there are to be fewer, `stop` once, also after an `add` that
    raised. These wait, and are called from threads that may; `stop` may come while another one runs. The other methods may be called from any thread.
    """

    @abstractmethod
    def add(self, newcomers: Sequence[Newcomer]) -> None:
        """Build further instances, return when all are ready to execute; none takes a request before `serve`.

        Raises what the first failing one raised, and then none of them is left.
        """

    @abstractmethod
    def serve(self, indexes: Collection[int]) -> None:
        """Let instances that were added take requests; those that are passive never do."""

    @abstractmethod
    def remove(self, indexes: Collection[int]) -> list[Future[None]]:
        """Let instances end when they did what is bound to them; return what is done when each of them is gone.

        The scheduler was told before. Instances that never served end at once.
        """

    @abstractmethod
    def stop(self) -> None:
        """End every instance after its current execution, and free what they shared."""

    @abstractmethod
    def alive(self) -> bool:
        """Say from memory whether every instance is there that is to stay; runs nothing of the model and never waits."""

    @abstractmethod
    def is_ready(self) -> bool:
        """Ask the model itself, through every instance; takes up to `READINESS_LIMIT_S`, then the answer is no.

        A check that raises says no too, and its error is logged.
        """

    def memory_usage(self) -> Sequence[MemoryUsage]:
        """Return what the version holds, one entry per kind of memory and device, as far as it is known; never waits (optional)."""
        return ()

    def measure_memory(self) -> None:
        """Find out what the version holds: its instances changed (optional)."""

    def cancelled(self, request: InferRequest) -> None:
        """Take note that `request`, which an instance took and has not answered, is not wanted any more (optional).

        It may come before the instance begins with the request, or when it has just answered. An instance of this process needs no message:
        it reads `request.cancelled`.
        """
