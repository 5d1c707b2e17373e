"""The sequence slots of one instance."""

from __future__ import annotations

from collections.abc import Sequence

from tritonpy_batching_sequence.live_sequence import LiveSequence

Decision = Sequence[LiveSequence] | int
"""The sequences whose next requests run together, or the latest time (ns) of the next decision."""


class SlotGroup:
    """The sequence slots of one instance.

    `ready` holds the sequences whose next request may run, in the order in which they became ready.
    `down` means that the instance's process ended and has not restarted. `draining` means that the
    instance is being removed and accepts no new sequences. `decision` is the last decision about
    this group, None after a change.
    """

    __slots__ = ("decision", "down", "draining", "instance", "ready", "slots")

    def __init__(self, instance: int, slots: int) -> None:
        self.instance = instance
        self.slots: list[LiveSequence | None] = [None] * slots
        self.ready: dict[LiveSequence, None] = {}
        self.draining = False
        self.down = False
        self.decision: Decision | None = None

    def sequences(self) -> list[LiveSequence]:
        """Return the sequences that have a slot, in slot order."""
        return [sequence for sequence in self.slots if sequence is not None]
