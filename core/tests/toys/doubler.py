"""Backends that define only `infer`, and one whose executions wait at a gate."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from tritonpy.api.backend import Array, Backend
from tritonpy_types import Batch


class Doubler(Backend):
    """OUT = 2 * IN; the number 13 makes it raise."""

    def infer(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        if (inputs["IN"] == 13).any():
            raise ValueError("thirteen cannot be doubled")
        return {"OUT": inputs["IN"] * 2}


class Gate:
    """Where executions of a `GatedDoubler` wait until the test opens it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._open = 0
        self.arrived: list[tuple[str, Any]] = []  # instance and batch, in order of arrival

    def pass_through(self, instance: str, batch: Batch) -> None:
        """Wait until the gate is open."""
        with self._changed:
            self.arrived.append((instance, batch))
            self._changed.notify_all()
            assert self._changed.wait_for(lambda: self._open > 0, 10), (
                "the test never opened the gate"
            )
            self._open -= 1

    def wait_for(self, count: int) -> None:
        """Wait until `count` executions have arrived."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.arrived) >= count, 10), (
                f"{len(self.arrived)} of {count} executions arrived"
            )

    def open(self, count: int = 1 << 30) -> None:
        """Let the next `count` executions pass."""
        with self._changed:
            self._open += count
            self._changed.notify_all()


def gated(gate: Gate) -> type[Backend]:
    """Return a doubler whose executions wait at `gate`."""

    class GatedDoubler(Doubler):
        def execute(self, batch: Batch) -> None:
            gate.pass_through(self.instance.name, batch)
            super().execute(batch)

    return GatedDoubler
