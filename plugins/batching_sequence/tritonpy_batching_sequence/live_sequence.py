"""One sequence that the scheduler knows, from its first request until nothing of it is left."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from tritonpy import UNBOUNDED, InferRequest

if TYPE_CHECKING:
    from tritonpy_batching_sequence.lane import Lane
    from tritonpy_batching_sequence.state import SequenceState

NEVER = UNBOUNDED


class LiveSequence:
    """Requests with one id. A START in the middle restarts it where it is: same object, same seat.

    `waiting` are its requests in order, `running` those that an instance has. It sits in `seat` of `lane`; without a lane
    it waits in the backlog, until `deadline_ns` at most. `begun`: an instance had a request of it, so that it can go to no other.
    `ended`: no further request may join; its id may be that of another sequence by now.
    `state` is what the model's implicit states keep between two requests, None before the first one runs.
    """

    __slots__ = ("begun", "deadline_ns", "ended", "id", "lane", "ready_ns", "running", "seat", "state", "waiting")

    def __init__(self, id: int | str) -> None:  # noqa: A002  it is what the protocol calls it
        self.id = id
        self.waiting: deque[InferRequest] = deque()
        self.running: set[InferRequest] = set()
        self.lane: Lane | None = None
        self.seat = -1
        self.begun = False
        self.ended = False
        self.deadline_ns = NEVER
        self.ready_ns = 0  # when its next request could run first; 0 until somebody looks at the clock
        self.state: SequenceState | None = None

    @property
    def open(self) -> bool:
        """Say whether some request of it has no final answer."""
        return bool(self.waiting or self.running)
