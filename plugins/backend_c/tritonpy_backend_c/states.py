"""The new states of sequences, which backends report one request at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tritonpy import Batch, Tensor
from tritonpy_backend_c.requests import row_of

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig


class NewStates:
    """Collects the rows of new states until their batch is answered."""

    def __init__(self, config: ModelConfig) -> None:
        self._inputs = {
            state.output_name: state.input_name for state in config.sequence_batching.state
        }
        self._rows: dict[int, dict[str, Tensor]] = {}  # by the tags of the requests

    def add(self, tag: int, state: Tensor) -> None:
        """Take the new state of one request."""
        self._rows.setdefault(tag, {})[state.name] = state

    def apply(self, batch: Batch, tags: Sequence[int]) -> None:
        """Set the new states of `batch`, whose requests have `tags`.

        A request, or slot, whose state was not updated keeps the old one.
        """
        if not self._rows:
            return
        found = [self._rows.pop(tag, {}) for tag in tags]
        old = {tensor.name: tensor for tensor in batch.states}
        requests: Sequence[object] = batch.requests if batch.slots is None else batch.slots
        for name in batch.state_outputs:
            rows, each = [], iter(found)
            for index, request in enumerate(requests):
                new = {} if request is None else next(each, {})
                rows.append(new.get(name) or row_of(old[self._inputs[name]], index))
            first = rows[0]
            data = np.concatenate([row.data for row in rows])
            batch.new_states[name] = Tensor(
                name, first.datatype, (len(rows), *first.shape[1:]), data
            )
