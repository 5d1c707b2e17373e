"""One instance as the dispatcher sees it."""

from __future__ import annotations

import threading
from collections.abc import Callable

from tritonpy.api.backend import InstanceContext
from tritonpy.api.scheduler import UNBOUNDED
from tritonpy.types import Batch

# An execution that takes less than this may run on the event loop's thread: to hand it to another thread and to take its answers back
# costs 100 us and, with two cores, up to ten changes of thread per request.
QUICK_NS = 500_000
# One that took much longer on the loop is kept off it for so many executions.
BARRED_FOR = 1000


class Slot:
    """Where an instance's thread parks until there is a batch for it.

    A bare lock is the bell: released to ring, acquired to wait. It costs a tenth of a threading.Condition.
    """

    __slots__ = (
        "_barred",
        "_cost_ns",
        "bell",
        "context",
        "idle",
        "index",
        "joined",
        "name",
        "open",
        "run_here",
        "until_ns",
    )

    def __init__(self, context: InstanceContext) -> None:
        self.context = context
        self.index = context.index
        self.name = context.name
        self.open = 0  # requests that the instance holds unanswered
        self.joined: list[Batch] = []  # taken by the backend itself, in the middle of an execution
        self.idle = False
        self.until_ns = 0  # while idle: when it looks again by itself, 0 for never
        self.run_here: Callable[[], None] | None = None  # takes a batch and executes it in the calling thread
        self._cost_ns = 0
        self._barred = 0
        self.bell = threading.Lock()
        self.bell.acquire()

    def room(self) -> int:
        """Return how many more requests the instance may hold."""
        bound = self.context.max_open
        return UNBOUNDED if bound is None else bound - self.open

    @property
    def is_quick(self) -> bool:
        """Say whether the next execution may run on the event loop's thread."""
        return self.run_here is not None and 0 < self._cost_ns < QUICK_NS and not self._barred

    def took(self, cost_ns: int, here: bool) -> None:
        """Take note of an execution: the thread's CPU time on the instance's own thread, the time it took where `here` is the loop's."""
        self._cost_ns += (cost_ns - self._cost_ns) // 8 if self._cost_ns else cost_ns
        if here and cost_ns > 4 * QUICK_NS:
            self._barred = BARRED_FOR
        elif self._barred:
            self._barred -= 1
