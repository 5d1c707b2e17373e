"""What one instance has to do with sequences."""

from __future__ import annotations

from collections.abc import Sequence

from tritonpy_batching_sequence.live_sequence import LiveSequence

Decision = Sequence[LiveSequence] | int
"""Whose next requests run together, or when to ask again at the latest (ns)."""


class Lane:
    """The seats of one instance. `ready` are the sequences whose next request may run, in the order in which that came about.

    `down`: the process of the instance ended and is not there again. `leaving`: the instance is to be removed; it takes no new sequence.
    `decision` is the latest one about the lane, None since it changed.
    """

    __slots__ = ("decision", "down", "instance", "leaving", "ready", "seats")

    def __init__(self, instance: int, seats: int) -> None:
        self.instance = instance
        self.seats: list[LiveSequence | None] = [None] * seats
        self.ready: dict[LiveSequence, None] = {}
        self.leaving = False
        self.down = False
        self.decision: Decision | None = None

    def sequences(self) -> list[LiveSequence]:
        """Return those that have a seat, in the order of the seats."""
        return [sequence for sequence in self.seats if sequence is not None]
