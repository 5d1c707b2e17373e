"""How a lane's ready sequences become batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from tritonpy_batching_sequence.lane import Decision, Lane
from tritonpy_batching_sequence.live_sequence import LiveSequence

KeyOf = Callable[[LiveSequence], object]


class Strategy(ABC):
    """A pure decision; the lane is only looked at, and has at least one ready sequence."""

    @abstractmethod
    def choose(self, lane: Lane, now_ns: int) -> Decision:
        """Return the sequences whose next requests run together now, or when to ask again at the latest (ns)."""

    def rows(self, lane: Lane, chosen: Sequence[LiveSequence]) -> Sequence[LiveSequence | None]:
        """Return which sequence is in which row of the batch; None is a row without data. Asked before they are pulled."""
        return chosen


def alike(sequences: Sequence[LiveSequence], key_of: KeyOf | None) -> Sequence[LiveSequence]:
    """Return those that may share a batch with the first."""
    if key_of is None or len(sequences) < 2:
        return sequences
    wanted = key_of(sequences[0])
    return [sequence for sequence in sequences if key_of(sequence) == wanted]
