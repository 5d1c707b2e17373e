"""Which steps of an ensemble some of its outputs need. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelEnsembling


def needed_steps(steps: Sequence[ModelEnsembling.Step], wanted: Collection[str]) -> list[int]:
    """Return the places of the steps that lead to the tensors `wanted`, ascending."""
    maker = {tensor: place for place, step in enumerate(steps) for tensor in step.output_map.values()}
    places, todo = set[int](), list(wanted)
    while todo:
        place = maker.get(todo.pop())
        if place is not None and place not in places:
            places.add(place)
            todo += steps[place].input_map.values()
    return sorted(places)
