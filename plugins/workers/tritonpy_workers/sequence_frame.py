"""The scheduler data of batches, as parts of their frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tritonpy import Batch, InferRequest, Tensor
from tritonpy_ipc.sequence_frame import SequenceHeader, SequenceSlot, write_sequence_frame


def needs_sequence_frame(batch: Batch) -> bool:
    """Return whether `batch` has scheduler data or requests of sequences."""
    return (
        batch.slots is not None
        or bool(batch.controls or batch.states or batch.state_outputs)
        or any([request.sequence is not None for request in batch.requests])
    )


def sequence_frame_parts(
    batches: Sequence[Batch],
) -> tuple[list[int], dict[str, Any], list[Sequence[Tensor]]]:
    """Return the words, the JSON extras and the additional rows of tensors for `batches`."""
    words, texts = write_sequence_frame(
        [(_header(batch), _sequence_slots(batch)) for batch in batches]
    )
    extras: dict[str, Any] = {"sequences": texts} if texts else {}
    outputs = {
        str(index): list(batch.state_outputs)
        for index, batch in enumerate(batches)
        if batch.state_outputs
    }
    if outputs:
        extras["state_outputs"] = outputs
    return (
        words,
        extras,
        [[*batch.controls, *batch.states] for batch in batches if batch.controls or batch.states],
    )


def _header(batch: Batch) -> SequenceHeader:
    return SequenceHeader(
        0 if batch.slots is None else len(batch.slots), len(batch.controls), len(batch.states)
    )


def _sequence_slots(batch: Batch) -> list[SequenceSlot]:
    slots: Sequence[InferRequest | None] = batch.requests if batch.slots is None else batch.slots
    return [
        _sequence_slot(request, slot) for slot, request in enumerate(slots) if request is not None
    ]


def _sequence_slot(request: InferRequest, slot: int) -> SequenceSlot:
    sequence = request.sequence
    return (
        SequenceSlot(0, False, False, slot)
        if sequence is None
        else SequenceSlot(sequence.id, sequence.start, sequence.end, slot)
    )
