"""One instance as the dispatcher sees it."""

from __future__ import annotations

import threading

from tritonpy.api.backend import InstanceContext
from tritonpy.api.scheduler import UNBOUNDED
from tritonpy.types import Batch


class Slot:
    """Where an instance's thread parks until there is a batch for it.

    A bare lock is the bell: released to ring, acquired to wait. It costs a tenth of a threading.Condition.
    """

    __slots__ = (
        "bell",
        "context",
        "dismissed",
        "gone",
        "handed",
        "idle",
        "index",
        "joined",
        "leaving",
        "name",
        "open",
        "until_ns",
    )

    def __init__(self, context: InstanceContext) -> None:
        self.context = context
        self.index = context.index
        self.name = context.name
        self.open = 0  # requests that the instance holds unanswered
        self.handed: Batch | None = None  # cut already, for the thread to execute
        self.joined: list[Batch] = []  # taken by the backend itself, in the middle of an execution
        self.idle = False
        self.leaving = False  # it gets nothing that is not bound to it
        self.dismissed = False  # it gets nothing at all
        self.gone = False  # and everything that it got is answered
        self.until_ns = 0  # while idle: when it looks again by itself, 0 for never
        self.bell = threading.Lock()
        self.bell.acquire()

    def ring(self) -> None:
        """Wake whoever runs the instance; called under the model's lock."""
        self.bell.release()

    def runs_here(self) -> bool:
        """Say whether `run` may be called in this thread, in place of `ring`; called under the model's lock."""
        return False

    def run(self, batch: Batch) -> None:
        """Execute `batch`, and what else waits; called without any lock."""
        raise NotImplementedError(f"{type(self).__name__} runs in no other thread than its own")

    def room(self) -> int:
        """Return how many more requests the instance may hold."""
        if self.dismissed:
            return 0
        bound = self.context.max_open
        return UNBOUNDED if bound is None else bound - self.open
