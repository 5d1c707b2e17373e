"""Implicit states of the sequences in running batches."""

from __future__ import annotations

from collections.abc import Sequence

from tritonpy import Batch, InferRequest
from tritonpy_batching_sequence.live_sequence import LiveSequence
from tritonpy_batching_sequence.state import ImplicitStates


class BatchStates:
    """Adds sequence states to batches and stores the new states after execution."""

    def __init__(self, states: ImplicitStates) -> None:
        self._states = states
        # By request, because a rescheduled request has no `batch` when its states are collected.
        self._batch_rows: dict[InferRequest, tuple[Batch, int]] = {}

    def add(
        self,
        batch: Batch,
        sequences: Sequence[LiveSequence | None],
        slots: Sequence[InferRequest | None],
    ) -> None:
        """Add the states of `sequences` to the batch of their requests in `slots`.

        A request with the START flag begins with the initial states.
        """
        for row, (sequence, request) in enumerate(zip(sequences, slots, strict=True)):
            if sequence is not None and request is not None:
                self._batch_rows[request] = batch, row
                if sequence.state is None or is_start(request):
                    sequence.state = self._states.start()
        batch.states = self._states.rows(
            [None if sequence is None else sequence.state for sequence in sequences]
        )
        batch.state_outputs = self._states.outputs

    def collect(self, sequence: LiveSequence, request: InferRequest) -> None:
        """Store the states that the execution of `request` returned.

        A failed execution returned none, so the sequence keeps its states.
        """
        place = self._batch_rows.pop(request, None)
        if place is not None and sequence.state is not None:
            self._states.update(sequence.state, *place)


def is_start(request: InferRequest) -> bool:
    """Return whether `request` begins a sequence."""
    return request.sequence is not None and request.sequence.start
