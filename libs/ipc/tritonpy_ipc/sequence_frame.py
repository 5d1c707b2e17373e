"""The words that describe scheduler data in a frame: sequences, slots and numbers of tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Union

from .frame import ProtocolError

_START, _END, _TEXT, _BITS = 1, 2, 4, 3
_MAX_SLOTS = 1 << 20  # of one execution: a larger number is invalid


class SequenceSlot(NamedTuple):
    """The sequence of a request (0 for none) and its slot."""

    sequence: Union[int, str]  # noqa: UP007  evaluated at run time, also by Python 3.9
    starts: bool
    ends: bool
    slot: int


class SequenceHeader(NamedTuple):
    """Numbers of slots, control tensors and states of an execution.

    If `slots` is 0, there is a row for each request.
    """

    slots: int
    controls: int
    states: int


def write_sequence_frame(
    executions: Sequence[tuple[SequenceHeader, Sequence[SequenceSlot]]],
) -> tuple[list[int], dict[str, str]]:
    """Return the words, and the string ids of sequences by the index of their request."""
    words: list[int] = []
    texts: dict[str, str] = {}
    index = 0
    for header, sequence_slots in executions:
        words += header
        for sequence, starts, ends, slot in sequence_slots:
            flags = (_START if starts else 0) | (_END if ends else 0) | slot << _BITS
            if isinstance(sequence, str):
                texts[str(index)] = sequence
                words += (0, flags | _TEXT)
            else:
                words += (sequence, flags)
            index += 1
    return words, texts


def read_sequence_frame(
    words: Sequence[int], at: int, sizes: Sequence[int], texts: Mapping[str, str]
) -> tuple[list[tuple[SequenceHeader, list[SequenceSlot]]], int]:
    """Return the decoded headers and slots, and the index of the next word.

    `sizes` are the numbers of requests of the executions. Raises `ProtocolError`.
    """
    executions: list[tuple[SequenceHeader, list[SequenceSlot]]] = []
    index = 0
    try:
        for size in sizes:
            header = SequenceHeader(words[at], words[at + 1], words[at + 2])
            at += 3
            sequence_slots = []
            for _ in range(size):
                flags = words[at + 1]
                sequence = texts[str(index)] if flags & _TEXT else words[at]
                sequence_slots.append(
                    SequenceSlot(sequence, bool(flags & _START), bool(flags & _END), flags >> _BITS)
                )
                at += 2
                index += 1
            _check(header, sequence_slots)
            executions.append((header, sequence_slots))
    except (IndexError, KeyError) as error:
        raise ProtocolError(f"the sequence data of a frame is truncated: {error!r}") from error
    return executions, at


def _check(header: SequenceHeader, sequence_slots: Sequence[SequenceSlot]) -> None:
    if header.slots > _MAX_SLOTS:
        raise ProtocolError(f"an execution announces {header.slots} slots")
    if header.slots:
        slots = [sequence_slot.slot for sequence_slot in sequence_slots]
        if slots != sorted(set(slots)) or (slots and slots[-1] >= header.slots):
            raise ProtocolError(
                f"the requests of an execution with {header.slots} slots have the slots {slots}"
            )
