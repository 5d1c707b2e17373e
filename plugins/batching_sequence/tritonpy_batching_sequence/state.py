"""Implicit state: tensors that the server keeps for a sequence between requests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tritonpy import Batch, Tensor
from tritonpy_batching_sequence.initial_state import initial_state, zeros

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig

Array = npt.NDArray[Any]
SequenceState = list[Tensor]
"""The states of one sequence in the order of the configuration: tensors of one row."""


class ImplicitStates:
    """The implicit states of a model's configuration. False if it has none.

    The model's lock protects it. Only a backend that received a state as its in-place buffer
    (`use_same_buffer_for_input_output`) writes to it. A stored state is a copy, never a view of a
    batch's memory.
    """

    def __init__(self, config: ModelConfig, directory: Path) -> None:
        """Read the initial states.

        Raises `InvalidArgument`, or `Internal` if a file in `directory` cannot be read.
        """
        states = config.sequence_batching.state
        self._batched = config.max_batch_size > 0
        self._initial = [
            _read_only(initial_state(state, self._batched, directory)) for state in states
        ]
        self._in_place = [state.use_same_buffer_for_input_output for state in states]
        self._varies = any(-1 in state.dims for state in states)
        self.outputs = tuple(state.output_name for state in states)

    def __bool__(self) -> bool:
        """Return whether the model has implicit states."""
        return bool(self.outputs)

    def start(self) -> SequenceState:
        """Return the states of a new sequence."""
        return [
            _copy(tensor, tensor.data) if in_place else tensor
            for tensor, in_place in zip(self._initial, self._in_place, strict=True)
        ]

    def shapes(self, state: SequenceState | None) -> tuple[tuple[int, ...], ...]:
        """Return the shapes of `state`. Two sequences can share a batch if these are equal.

        `state` is None for a sequence that begins with its next request.
        """
        return tuple([tensor.shape for tensor in state or self._initial]) if self._varies else ()

    def rows(self, states: Sequence[SequenceState | None]) -> list[Tensor]:
        """Return `Batch.states` for slots with these states.

        A slot without data has None and gets zeros. At least one state must not be None, and all
        `shapes` must be equal. A single row is returned without a copy.
        """
        if len(states) == 1 and states[0] is not None:
            return list(states[0])
        like = next(state for state in states if state is not None)
        joined = []
        for index, tensor in enumerate(like):
            empty = zeros(tensor.name, tensor.datatype, tensor.shape)
            rows = _concatenated([empty if state is None else state[index] for state in states])
            joined.append(rows if self._in_place[index] else _read_only(rows))
        return joined

    def update(self, state: SequenceState, batch: Batch, row: int) -> None:
        """Store in `state` the new states from `row` of an executed batch.

        States that the backend did not return stay unchanged.
        """
        for index, output in enumerate(self.outputs):
            new = batch.new_states.get(output)
            if new is not None:
                state[index] = self._updated(state[index], new, row, self._in_place[index])

    def _updated(self, old: Tensor, new: Tensor, row: int, in_place: bool) -> Tensor:
        if new.datatype == "BYTES":
            return self._updated_strings(old.name, new, row)
        whole = new.numpy()
        data = whole[row : row + 1] if self._batched else whole
        if not in_place:
            return _read_only(_copy(old, data))
        if data.shape != old.shape:
            return _copy(old, data)
        if data.ctypes.data != old.data.ctypes.data:
            np.copyto(old.data, data)
        return old

    def _updated_strings(self, name: str, new: Tensor, row: int) -> Tensor:
        if not self._batched:
            return _read_only(Tensor(name, "BYTES", new.shape, new.data.copy()))
        offsets = new.offsets()
        per_row = (len(offsets) - 1) // new.shape[0]
        data = new.data[offsets[row * per_row] : offsets[(row + 1) * per_row]]
        return _read_only(Tensor(name, "BYTES", (1, *new.shape[1:]), data.copy()))


def _copy(like: Tensor, data: Array) -> Tensor:
    own = np.array(data, order="C")
    return Tensor(
        like.name, like.datatype, own.shape if like.datatype != "BYTES" else like.shape, own
    )


def _read_only(tensor: Tensor) -> Tensor:
    tensor.data.flags.writeable = False
    return tensor


def _concatenated(tensors: Sequence[Tensor]) -> Tensor:
    like = tensors[0]
    data = np.concatenate([tensor.data for tensor in tensors])
    return Tensor(like.name, like.datatype, (len(tensors), *like.shape[1:]), data)
