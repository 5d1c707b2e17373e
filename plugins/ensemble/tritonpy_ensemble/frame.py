"""How far a plan has come: which tensors are there, and which steps can begin."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tritonpy import InferResponse, SequenceInfo, Tensor
from tritonpy_ensemble.answer_order import Place
from tritonpy_ensemble.plan import Plan, Step


class Value(NamedTuple):
    """What stands for a tensor of the ensemble; `tensor` is None where it was left out, which inputs that are optional can do without.

    `rows` is the batch size of the request that it came with, 0 where that has no batch dimension. `sequence` is what the next steps are told.
    """

    tensor: Tensor | None
    rows: int
    sequence: SequenceInfo | None


_GONE = Value(None, 0, None)
_ANSWERED = -1


class Frame:
    """One pass through a plan, or from the answer of a decoupled model on through the rest of it.

    A value is let go of when it was handed on for the last time; an output is kept until the answer.
    """

    __slots__ = ("_lacking", "_missing", "_uses", "_values", "place", "plan")

    def __init__(self, plan: Plan, place: Place[InferResponse] | None = None) -> None:
        self.plan = plan
        self.place = place
        self._lacking = len(plan.outputs)
        self._values: list[Value | None] = [None] * len(plan.tensors)
        self._missing = list(plan.missing)
        self._uses = list(plan.uses)

    def fill(self, tensor: int, value: Value, startable: list[tuple[Frame, Step]]) -> None:
        """Put a value in its place, and the steps that waited for it alone in `startable`; a tensor that is there already stays as it is."""
        if self._values[tensor] is not None:
            return
        self._values[tensor] = value
        plan, missing = self.plan, self._missing
        if plan.is_output[tensor]:
            self._lacking -= 1
        for step in plan.waiting[tensor]:
            missing[step.index] -= 1
            if not missing[step.index]:
                startable.append((self, step))

    def take(self, tensor: int) -> Value:
        """Return a value to hand it on, once for each time that the plan says."""
        value = self._values[tensor]
        assert value is not None, f"'{self.plan.tensors[tensor]}' is handed on before it is there: this is a bug"  # noqa: S101
        self._uses[tensor] -= 1
        if not self._uses[tensor] and not self.plan.is_output[tensor]:
            self._values[tensor] = _GONE
        return value

    def end(self, tensor: int) -> Value:
        """Return the value of an output of the ensemble, for its answer."""
        value = self._values[tensor]
        assert value is not None, f"'{self.plan.tensors[tensor]}' is answered before it is there: this is a bug"  # noqa: S101
        if not self._uses[tensor]:
            self._values[tensor] = _GONE
        return value

    def has_all(self, tensors: Iterable[int]) -> bool:
        """Return whether these tensors came, whatever became of them."""
        return all(self._values[tensor] is not None for tensor in tensors)

    def take_whole(self) -> bool:
        """Return True once: when every output is there."""
        if self._lacking:
            return False
        self._lacking = _ANSWERED
        return True
