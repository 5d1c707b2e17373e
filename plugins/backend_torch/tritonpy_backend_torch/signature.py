"""Signature of a PyTorch model: its inputs and outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

ANY_ROWS = 2**63 - 1


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """Data type and shape of one tensor; a dynamic dimension is -1, a scalar has no dimensions."""

    datatype: str
    dims: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """One input or output, with the names that a configuration may use, the preferred one first.

    `info` is None if the model does not describe the tensor. An input that is not `required` has
    the value `default` if a request omits it. One without names always has this value.
    """

    names: tuple[str, ...]
    info: TensorInfo | None = None
    required: bool = True
    default: Any = None


@dataclass(frozen=True, slots=True)
class Signature:
    """Inputs and outputs in the model's order.

    `max_rows` is the largest batch, or 0 if it is unknown or the model does not batch. With
    `has_free_names`, the model defines at most the names of its arguments; a configuration may
    number inputs and outputs or list them in order. With `takes_dict`, the model takes all inputs
    as one dictionary with arbitrary names.
    """

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...] = ()
    max_rows: int = 0
    has_free_names: bool = False
    takes_dict: bool = False

    @property
    def client_inputs(self) -> tuple[TensorSpec, ...]:
        """The inputs that requests may contain."""
        return tuple([spec for spec in self.inputs if spec.names])

    @property
    def is_complete(self) -> bool:
        """Whether the signature is sufficient to complete a configuration."""
        return bool(self.client_inputs and self.outputs) and all(
            spec.info is not None for spec in (*self.client_inputs, *self.outputs)
        )

    def input_numbers(self) -> Mapping[str, int]:
        """Return the index of the input for each accepted name."""
        return _numbers(self.inputs)

    def output_numbers(self) -> Mapping[str, int]:
        """Return the index of the output for each accepted name."""
        return _numbers(self.outputs)


def _numbers(specs: tuple[TensorSpec, ...]) -> Mapping[str, int]:
    return {
        name: number
        for number, spec in reversed(list(enumerate(specs)))
        for name in reversed(spec.names)
    }
