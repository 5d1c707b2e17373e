"""A backend that reports memory usage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from tritonpy.api.backend import Array, Backend
from tritonpy.api.contexts import InstanceContext, ModelContext
from tritonpy.api.engine import MemoryUsage

WEIGHTS, OWN = 1 << 40, 1 << 30


class HeavyBackend(Backend):
    """Reports weights on GPU 1 and memory of each instance, which grows with each execution.

    `error` is raised instead if it is set.
    """

    error: ClassVar[object] = None

    @classmethod
    def load(cls, model: ModelContext) -> object:
        return WEIGHTS

    @classmethod
    def shared_memory_usage(cls, shared: object) -> Sequence[MemoryUsage]:
        assert isinstance(shared, int)
        return [MemoryUsage("GPU", 1, shared)]

    def __init__(self, model: ModelContext, instance: InstanceContext) -> None:
        super().__init__(model, instance)
        self.executed = 0

    def infer(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        self.executed += 1
        return {"OUT": inputs["IN"]}

    def memory_usage(self) -> Sequence[MemoryUsage]:
        if HeavyBackend.error is not None:
            raise ValueError(HeavyBackend.error)
        return [
            MemoryUsage("GPU", 0, OWN + self.executed),
            MemoryUsage("CPU_PINNED", 0, 5),
            MemoryUsage("CPU", 0, 7),
        ]
