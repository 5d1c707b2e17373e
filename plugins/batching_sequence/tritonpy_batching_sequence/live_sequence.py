"""State of one live sequence."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from tritonpy import InferRequest
from tritonpy.scheduling import UNBOUNDED

if TYPE_CHECKING:
    from tritonpy_batching_sequence.slot_group import SlotGroup
    from tritonpy_batching_sequence.state import SequenceState

NEVER = UNBOUNDED


class LiveSequence:
    """A sequence: the requests with one correlation id.

    A START flag on a later request restarts the sequence in the same object and slot.

    `waiting` contains its queued requests in order, `running` those that an instance executes. The
    sequence occupies `slot` of `group`. Without a group it waits in the backlog, until
    `deadline_ns` at most. `begun` means that an instance has received a request, so the sequence
    must stay at that instance. `ended` means that it accepts no further request; another sequence
    may then use the id. `state` contains the model's implicit states between requests. It is None
    before the first request runs.
    """

    __slots__ = (
        "begun",
        "deadline_ns",
        "ended",
        "group",
        "id",
        "ready_ns",
        "running",
        "slot",
        "state",
        "waiting",
    )

    def __init__(self, id: int | str) -> None:  # noqa: A002  the protocol's term
        self.id = id
        self.waiting: deque[InferRequest] = deque()
        self.running: set[InferRequest] = set()
        self.group: SlotGroup | None = None
        self.slot = -1
        self.begun = False
        self.ended = False
        self.deadline_ns = NEVER
        # Time when the next request became ready, 0 until `SequenceTable.stamp` sets it.
        self.ready_ns = 0
        self.state: SequenceState | None = None

    @property
    def has_requests(self) -> bool:
        """Return whether a request is waiting or running."""
        return bool(self.waiting or self.running)
