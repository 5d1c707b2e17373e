"""Progress of one pass through a plan: available tensors and steps that can begin."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tritonpy import InferResponse, SequenceInfo, Tensor
from tritonpy_ensemble.plan import EnsembleStep, Plan
from tritonpy_ensemble.response_order import OrderNode


class Value(NamedTuple):
    """The value of one ensemble tensor.

    `tensor` is None if the request or a member omitted it, which optional inputs allow. `rows` is
    the batch size of its request, 0 without a batch dimension. `sequence` is the sequence for the
    steps that read it.
    """

    tensor: Tensor | None
    rows: int
    sequence: SequenceInfo | None


_RELEASED = Value(None, 0, None)
_COMPLETED = -1


class PlanProgress:
    """One pass through a plan, or through the part that follows a response of a decoupled member.

    A value is released after its last use. An output is kept until the response.
    """

    __slots__ = ("_missing", "_missing_outputs", "_uses", "_values", "node", "plan")

    def __init__(self, plan: Plan, node: OrderNode[InferResponse] | None = None) -> None:
        self.plan = plan
        self.node = node
        self._missing_outputs = len(plan.outputs)
        self._values: list[Value | None] = [None] * len(plan.tensors)
        self._missing = list(plan.missing)
        self._uses = list(plan.uses)

    def fill(
        self, tensor: int, value: Value, startable: list[tuple[PlanProgress, EnsembleStep]]
    ) -> None:
        """Set a tensor's value and append the steps that can begin now to `startable`.

        A tensor that already has a value keeps it.
        """
        if self._values[tensor] is not None:
            return
        self._values[tensor] = value
        plan, missing = self.plan, self._missing
        if plan.is_output[tensor]:
            self._missing_outputs -= 1
        for step in plan.waiting[tensor]:
            missing[step.index] -= 1
            if not missing[step.index]:
                startable.append((self, step))

    def take(self, tensor: int) -> Value:
        """Return a value for one of its uses and release it after the last one."""
        value = self._values[tensor]
        assert value is not None, (  # noqa: S101
            f"'{self.plan.tensors[tensor]}' is used before it is present: this is a bug"
        )
        self._uses[tensor] -= 1
        if not self._uses[tensor] and not self.plan.is_output[tensor]:
            self._values[tensor] = _RELEASED
        return value

    def end(self, tensor: int) -> Value:
        """Return the value of an ensemble output for the response."""
        value = self._values[tensor]
        assert value is not None, (  # noqa: S101
            f"'{self.plan.tensors[tensor]}' is sent before it is present: this is a bug"
        )
        if not self._uses[tensor]:
            self._values[tensor] = _RELEASED
        return value

    def are_present(self, tensors: Iterable[int]) -> bool:
        """Return whether all of these tensors have a value, or had one that was released."""
        return all(self._values[tensor] is not None for tensor in tensors)

    def take_completed(self) -> bool:
        """Return True once, when every output is present."""
        if self._missing_outputs:
            return False
        self._missing_outputs = _COMPLETED
        return True
