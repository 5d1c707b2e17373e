"""What a scheduler adds to executions, as words of their frame: which sequence each request is of, its slot, and how many tensors there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Union

from .frame import ProtocolError

_START, _END, _TEXT, _BITS = 1, 2, 4, 3
_MOST_SLOTS = 1 << 20  # of one execution: a number beyond it is garbage


class Seat(NamedTuple):
    """The sequence of a request, 0 for none, and its slot."""

    sequence: Union[int, str]  # noqa: UP007  it is evaluated, and old interpreters know nothing else
    starts: bool
    ends: bool
    slot: int


class Added(NamedTuple):
    """What an execution has besides its requests. Without `slots` (0) there is a row for each request."""

    slots: int
    controls: int
    states: int


def write_laden(executions: Sequence[tuple[Added, Sequence[Seat]]]) -> tuple[list[int], dict[str, str]]:
    """Return the words, and the ids that are texts by the index of their request in the frame."""
    words: list[int] = []
    texts: dict[str, str] = {}
    index = 0
    for added, seats in executions:
        words += added
        for sequence, starts, ends, slot in seats:
            flags = (_START if starts else 0) | (_END if ends else 0) | slot << _BITS
            if isinstance(sequence, str):
                texts[str(index)] = sequence
                words += (0, flags | _TEXT)
            else:
                words += (sequence, flags)
            index += 1
    return words, texts


def read_laden(
    words: Sequence[int], at: int, sizes: Sequence[int], texts: Mapping[str, str]
) -> tuple[list[tuple[Added, list[Seat]]], int]:
    """Return what `write_laden` was given for executions of so many requests, and the index of the next word. Raises ProtocolError."""
    executions: list[tuple[Added, list[Seat]]] = []
    index = 0
    try:
        for size in sizes:
            added = Added(words[at], words[at + 1], words[at + 2])
            at += 3
            seats = []
            for _ in range(size):
                flags = words[at + 1]
                sequence = texts[str(index)] if flags & _TEXT else words[at]
                seats.append(Seat(sequence, bool(flags & _START), bool(flags & _END), flags >> _BITS))
                at += 2
                index += 1
            _check(added, seats)
            executions.append((added, seats))
    except (IndexError, KeyError) as error:
        raise ProtocolError(f"what a scheduler added is cut short: {error!r}") from error
    return executions, at


def _check(added: Added, seats: Sequence[Seat]) -> None:
    if added.slots > _MOST_SLOTS:
        raise ProtocolError(f"an execution announces {added.slots} slots")
    if added.slots:
        slots = [seat.slot for seat in seats]
        if slots != sorted(set(slots)) or (slots and slots[-1] >= added.slots):
            raise ProtocolError(f"the requests of {added.slots} slots sit in {slots}")
