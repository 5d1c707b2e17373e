"""The states of sequences in the batches that run."""

from __future__ import annotations

from collections.abc import Sequence

from tritonpy import Batch, InferRequest
from tritonpy_batching_sequence.live_sequence import LiveSequence
from tritonpy_batching_sequence.state import ImplicitStates


class BatchStates:
    """Gives each batch the states of its sequences, and each sequence what the batch made of them."""

    def __init__(self, states: ImplicitStates) -> None:
        self._states = states
        # A request that is handed back has no batch any more when that is told.
        self._places: dict[InferRequest, tuple[Batch, int]] = {}

    def add(self, batch: Batch, sequences: Sequence[LiveSequence | None], slots: Sequence[InferRequest | None]) -> None:
        """Add the states of `sequences` to the batch of their requests in `slots`; a request with START begins with the initial ones."""
        for row, (sequence, request) in enumerate(zip(sequences, slots, strict=True)):
            if sequence is not None and request is not None:
                self._places[request] = batch, row
                if sequence.state is None or starts(request):
                    sequence.state = self._states.start()
        batch.states = self._states.rows([None if sequence is None else sequence.state for sequence in sequences])
        batch.state_outputs = self._states.outputs

    def take_back(self, sequence: LiveSequence, request: InferRequest) -> None:
        """Keep what the execution of `request` made of its sequence's states; one that failed made nothing of them."""
        place = self._places.pop(request, None)
        if place is not None and sequence.state is not None:
            self._states.take_back(sequence.state, *place)


def starts(request: InferRequest) -> bool:
    """Say whether `request` begins a sequence."""
    return request.sequence is not None and request.sequence.start
