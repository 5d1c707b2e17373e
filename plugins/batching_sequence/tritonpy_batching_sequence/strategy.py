"""Strategies that select the sequences of a batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from tritonpy_batching_sequence.live_sequence import LiveSequence
from tritonpy_batching_sequence.slot_group import Decision, SlotGroup

KeyOf = Callable[[LiveSequence], object]


class Strategy(ABC):
    """Selects the sequences of a batch.

    It does not modify the group, which has a ready sequence.
    """

    @abstractmethod
    def choose(self, group: SlotGroup, now_ns: int) -> Decision:
        """Return the sequences whose next requests run together now.

        If no batch can run now, return the latest time (ns) at which to call again.
        """

    def rows(
        self, group: SlotGroup, chosen: Sequence[LiveSequence]
    ) -> Sequence[LiveSequence | None]:
        """Return the sequence of each batch row.

        None is a row without data. Called before `pull`.
        """
        return chosen


def compatible(sequences: Sequence[LiveSequence], key_of: KeyOf | None) -> Sequence[LiveSequence]:
    """Return the sequences that may share a batch with the first."""
    if key_of is None or len(sequences) < 2:
        return sequences
    first_key = key_of(sequences[0])
    return [sequence for sequence in sequences if key_of(sequence) == first_key]
