"""One instance as the dispatcher sees it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from tritonpy.api.backend import InstanceContext
from tritonpy.api.scheduler import UNBOUNDED
from tritonpy.types import Batch

if TYPE_CHECKING:
    from tritonpy.runners.quickness import Quickness
    from tritonpy.runners.rings import Rings
    from tritonpy.runners.thread_pool import ThreadPool


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

    def close(self) -> None:
        """Record that the model is closed while the instance is idle; called under the model's lock."""
        self.ring()

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


class PooledSlot(Slot):
    """An instance that has a thread of a pool while it has something to do, and none while it is idle.

    From the moment in which it is rung until it is noted as idle again it has one owner: the thread that calls `work`, or, while `quickness` is
    hopeful, the event loop, which calls `run` at the end of its turn. `ended` is called when the model closes and it has no owner.
    """

    __slots__ = ("_ended", "_quickness", "_rings", "_run", "_threads", "_work", "parked")

    def __init__(
        self,
        context: InstanceContext,
        threads: ThreadPool,
        rings: Rings,
        work: Callable[[], None],
        run: Callable[[Batch | None], None],
        ended: Callable[[], None],
        quickness: Quickness | None = None,
    ) -> None:
        super().__init__(context)
        self.parked = False  # a thread waits at the bell, for a time that the scheduler named
        self._threads = threads
        self._rings = rings
        self._work = work
        self._run = run
        self._ended = ended
        self._quickness = quickness

    def ring(self) -> None:
        if self.runs_here():
            self._rings.soon(self._run_what_waits)
        else:
            self.wake_thread()

    def wake_thread(self) -> None:
        """Let a thread own the instance; called under the model's lock."""
        if self.parked:
            self.parked = False
            self.bell.release()
        else:
            self._threads.run(self._work)

    def close(self) -> None:
        if self.parked:
            self.wake_thread()
        else:
            self._ended()

    def runs_here(self) -> bool:
        quickness = self._quickness
        return quickness is not None and quickness.hopeful and self._rings.in_turn()

    def run(self, batch: Batch) -> None:
        self._run(batch)

    def _run_what_waits(self) -> None:
        self._run(None)
