"""The direct strategy: a seat is a row of the batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tritonpy_batching_sequence.lane import Decision, Lane
from tritonpy_batching_sequence.live_sequence import LiveSequence
from tritonpy_batching_sequence.strategy import KeyOf, Strategy, alike


class Direct(Strategy):
    """Every ready sequence that is like the one of the lowest seat.

    Where both a delay and a share of seats are asked for, they wait for one of the two: until that share is ready, or the oldest request is that old.
    """

    def __init__(self, seats: int, delay_ns: int, utilization: float, key_of: KeyOf | None) -> None:
        self._delay_ns = delay_ns if utilization else 0
        # The share is a number of 32 bits, and so is what it is compared to: 3 of 5 seats are 0.6.
        share = np.float32(utilization)
        self._enough = next(count for count in range(seats + 1) if np.float32(count) / np.float32(seats) >= share)
        self._key_of = key_of

    def choose(self, lane: Lane, now_ns: int) -> Decision:
        """Return the sequences in the order of their seats, or when the oldest request has waited long enough."""
        ready = sorted(lane.ready, key=_seat)
        if self._delay_ns and len(ready) < self._enough:
            due_ns = min([sequence.waiting[0].queued_ns for sequence in ready]) + self._delay_ns
            if now_ns < due_ns:
                return due_ns
        return alike(ready, self._key_of)

    def rows(self, lane: Lane, chosen: Sequence[LiveSequence]) -> Sequence[LiveSequence | None]:
        """Return a row for each seat up to the highest one that is ready."""
        rows: list[LiveSequence | None] = [None] * (max(map(_seat, lane.ready)) + 1)
        for sequence in chosen:
            rows[sequence.seat] = sequence
        return rows


def _seat(sequence: LiveSequence) -> int:
    return sequence.seat
