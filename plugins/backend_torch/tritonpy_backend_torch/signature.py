"""What a model says of its own inputs and outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

ANY_ROWS = 2**63 - 1


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """Data type in the protocol's name and shape of one tensor; a dimension that the model leaves open is -1, a scalar has none."""

    datatype: str
    dims: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """One input or output: the names that a configuration may give it, the best one first, and its tensor where the model tells that.

    An input that is not `required` has the value `default` where a request leaves it out. One without any name always has it.
    """

    names: tuple[str, ...]
    info: TensorInfo | None = None
    required: bool = True
    default: Any = None


@dataclass(frozen=True, slots=True)
class Signature:
    """Inputs and outputs in the model's order, and how many rows a batch may have: 0 where the model does not batch or does not tell.

    `named_freely` is true for a model that knows nothing but the names of its arguments, if those: a configuration may then number its inputs and
    outputs, or just list them in order. `takes_dict` is true for one that takes all its inputs as one dictionary, under any names.
    """

    inputs: tuple[Place, ...]
    outputs: tuple[Place, ...] = ()
    most_rows: int = 0
    named_freely: bool = False
    takes_dict: bool = False

    @property
    def given(self) -> tuple[Place, ...]:
        """The inputs that requests may give."""
        return tuple([place for place in self.inputs if place.names])

    @property
    def is_complete(self) -> bool:
        """Say whether a configuration can be made of it."""
        return bool(self.given and self.outputs) and all(
            place.info is not None for place in (*self.given, *self.outputs)
        )

    def input_numbers(self) -> Mapping[str, int]:
        """Return the number of the input that each possible name means."""
        return _numbers(self.inputs)

    def output_numbers(self) -> Mapping[str, int]:
        """Return the number of the output that each possible name means."""
        return _numbers(self.outputs)


def _numbers(places: tuple[Place, ...]) -> Mapping[str, int]:
    return {name: number for number, place in reversed(list(enumerate(places))) for name in reversed(place.names)}
