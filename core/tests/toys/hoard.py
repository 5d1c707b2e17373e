"""A backend whose models hold as much memory as configured, and a record of all that they hold."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from tritonpy.api.backend import Array, Backend
from tritonpy.api.contexts import InstanceContext, ModelContext
from tritonpy.api.engine import MemoryUsage

from .serving import config_of

MIB = 1 << 20


class HeldMemory:
    """The memory that the models of one test hold; `most` is the peak.

    Executions wait while the model's gate is closed.
    """

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.held: dict[str, int] = {}
        self.most = 0
        self.loads: list[str] = []
        self.inside: list[str] = []
        self.broken: set[str] = set()
        self.grown: dict[str, int] = {}
        self._shut: set[str] = set()

    def loading(self, name: str, size: int) -> None:
        """Hold `size` more bytes; a broken model raises, and a closed gate delays the load."""
        with self.changed:
            self.loads.append(name)
            self.changed.notify_all()
            assert self.changed.wait_for(lambda: f"load {name}" not in self._shut, 20)
            if name in self.broken:
                raise ValueError(f"{name} is broken")
            self.held[name] = self.held.get(name, 0) + size
            self.most = max(self.most, sum(self.held.values()))
            self.changed.notify_all()

    def freed(self, name: str, size: int) -> None:
        """Hold `size` fewer bytes."""
        with self.changed:
            self.held[name] -= size
            if not self.held[name]:
                del self.held[name]
            self.changed.notify_all()

    def execute(self, name: str) -> None:
        """Wait while the gate is closed."""
        with self.changed:
            self.inside.append(name)
            self.changed.notify_all()
            assert self.changed.wait_for(lambda: name not in self._shut, 20)
            self.inside.remove(name)

    def shut(self, *gates: str) -> None:
        """Close gates: executions of these models wait, or loads (`load NAME`)."""
        with self.changed:
            self._shut.update(gates)

    def open(self, *gates: str) -> None:
        """Open gates."""
        with self.changed:
            self._shut.difference_update(gates)
            self.changed.notify_all()

    def wait(self, condition: Any) -> None:
        """Wait until `condition()` is true; actions of models may change it."""
        with self.changed:
            assert self.changed.wait_for(condition, 20), (
                f"held: {self.held}, inside: {self.inside}, loads: {self.loads}"
            )


def memory_backend(hoard: HeldMemory) -> type[Backend]:
    """Return a backend whose models hold their parameter `size` in bytes, and return OUT = 2 * IN."""

    class MemoryBackend(Backend):
        @classmethod
        def load(cls, model: ModelContext) -> object:
            size = int(model.parameters.get("size", MIB))
            hoard.loading(model.name, size)
            return model.name, size

        def __init__(self, model: ModelContext, instance: InstanceContext) -> None:
            super().__init__(model, instance)
            self._extra = int(model.parameters.get("each", 0))
            if self._extra:
                hoard.loading(model.name, self._extra)

        def infer(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
            hoard.execute(self.model.name)
            return {"OUT": inputs["IN"] * 2}

        def memory_usage(self) -> Sequence[MemoryUsage]:
            return [MemoryUsage("CPU", 0, self._extra)]

        def close(self) -> None:
            if self._extra:
                hoard.freed(self.model.name, self._extra)

        @classmethod
        def shared_memory_usage(cls, shared: Any) -> Sequence[MemoryUsage]:
            return [MemoryUsage("CPU", 0, shared[1] + hoard.grown.get(shared[0], 0))]

        @classmethod
        def unload(cls, shared: Any) -> None:
            hoard.freed(*shared)

    return MemoryBackend


def parameters(**values: object) -> str:
    """Return the text of a configuration's parameters."""
    return "".join(
        f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}\n'
        for key, value in values.items()
    )


def memory_config(*, more: str = "", instances: int = 1, **values: object) -> str:
    """Return the configuration of a model; `values` are its parameters."""
    return config_of("hoarder", instances=instances, more=parameters(**values) + more)
