"""The steps of an ensemble that some of its outputs need. A pure function."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelEnsembling


def needed_steps(steps: Sequence[ModelEnsembling.Step], outputs: Collection[str]) -> list[int]:
    """Return the indices of the steps that the tensors `outputs` depend on, ascending."""
    producers = {tensor: index for index, step in enumerate(steps) for tensor in step.output_map.values()}
    indices, pending = set[int](), list(outputs)
    while pending:
        index = producers.get(pending.pop())
        if index is not None and index not in indices:
            indices.add(index)
            pending += steps[index].input_map.values()
    return sorted(indices)
