"""The direct strategy: each sequence slot is a row of the batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tritonpy_batching_sequence.live_sequence import LiveSequence
from tritonpy_batching_sequence.slot_group import Decision, SlotGroup
from tritonpy_batching_sequence.strategy import KeyOf, Strategy, compatible


class Direct(Strategy):
    """Runs every ready sequence that is compatible with the one in the lowest slot.

    With both a delay and a slot utilization, a batch runs as soon as enough slots are ready, or
    when the oldest request has waited for the delay.
    """

    def __init__(self, slots: int, delay_ns: int, utilization: float, key_of: KeyOf | None) -> None:
        self._delay_ns = delay_ns if utilization else 0
        # Compare as float32, as Triton does: 3 of 5 slots are exactly 0.6.
        share = np.float32(utilization)
        self._enough = next(
            count for count in range(slots + 1) if np.float32(count) / np.float32(slots) >= share
        )
        self._key_of = key_of

    def choose(self, group: SlotGroup, now_ns: int) -> Decision:
        """Return the sequences in slot order, or the time (ns) when the delay ends."""
        ready = sorted(group.ready, key=_slot_of)
        if self._delay_ns and len(ready) < self._enough:
            due_ns = min([sequence.waiting[0].queued_ns for sequence in ready]) + self._delay_ns
            if now_ns < due_ns:
                return due_ns
        return compatible(ready, self._key_of)

    def rows(
        self, group: SlotGroup, chosen: Sequence[LiveSequence]
    ) -> Sequence[LiveSequence | None]:
        """Return one row per slot, up to the highest ready slot."""
        rows: list[LiveSequence | None] = [None] * (max(map(_slot_of, group.ready)) + 1)
        for sequence in chosen:
            rows[sequence.slot] = sequence
        return rows


def _slot_of(sequence: LiveSequence) -> int:
    return sequence.slot
