"""What a scheduler added to batches, for their frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tritonpy.ipc.laden import Added, Seat, write_laden
from tritonpy.types import Batch, InferRequest, Tensor


def is_laden(batch: Batch) -> bool:
    """Say whether the scheduler added something to `batch`, or some request is of a sequence."""
    return (
        batch.slots is not None
        or bool(batch.controls or batch.states or batch.state_outputs)
        or any([request.sequence is not None for request in batch.requests])
    )


def laden_words(batches: Sequence[Batch]) -> tuple[list[int], dict[str, Any], list[Sequence[Tensor]]]:
    """Return the words and the extras of a laden frame, and the rows of tensors that follow those of the requests."""
    words, texts = write_laden([(_added(batch), _seats(batch)) for batch in batches])
    extras: dict[str, Any] = {"sequences": texts} if texts else {}
    outputs = {str(index): list(batch.state_outputs) for index, batch in enumerate(batches) if batch.state_outputs}
    if outputs:
        extras["state_outputs"] = outputs
    return words, extras, [[*batch.controls, *batch.states] for batch in batches if batch.controls or batch.states]


def _added(batch: Batch) -> Added:
    return Added(0 if batch.slots is None else len(batch.slots), len(batch.controls), len(batch.states))


def _seats(batch: Batch) -> list[Seat]:
    slots: Sequence[InferRequest | None] = batch.requests if batch.slots is None else batch.slots
    return [_seat(request, slot) for slot, request in enumerate(slots) if request is not None]


def _seat(request: InferRequest, slot: int) -> Seat:
    sequence = request.sequence
    return Seat(0, False, False, slot) if sequence is None else Seat(sequence.id, sequence.start, sequence.end, slot)
