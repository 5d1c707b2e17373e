"""What a loaded model asks of whatever runs its instances."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tritonpy.api.backend import InstanceContext
from tritonpy.types import InferRequest

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelInstanceGroup

READINESS_LIMIT_S = 5.0  # how long a model may think about whether it is ready, before it is taken for not ready


class Runner(ABC):
    """Starts, feeds and ends the instances of one model version.

    Life: `start` and `stop` are called once each, from a thread that may wait; `stop` also after a `start` that raised. The other methods may be
    called from any thread between the two.
    """

    @abstractmethod
    def start(self, instances: Sequence[tuple[InstanceContext, ModelInstanceGroup]]) -> None:
        """Build every instance, return when all are ready to execute. Raises what the first failing one raised."""

    @abstractmethod
    def stop(self) -> None:
        """End every instance after its current execution, and free what they shared."""

    @abstractmethod
    def alive(self) -> bool:
        """Say from memory whether every instance is there; runs nothing of the model and never waits."""

    @abstractmethod
    def is_ready(self) -> bool:
        """Ask the model itself, through every instance; takes up to `READINESS_LIMIT_S`, then the answer is no.

        A check that raises says no too, and its error is logged.
        """

    def cancelled(self, request: InferRequest) -> None:
        """Take note that `request`, which an instance took and has not answered, is not wanted any more (optional).

        It may come before the instance begins with the request, or when it has just answered. An instance of this process needs no message:
        it reads `request.cancelled`.
        """
