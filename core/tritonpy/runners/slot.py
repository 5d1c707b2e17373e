"""The dispatcher's view of an instance."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from mypy_extensions import mypyc_attr

from tritonpy.api.contexts import InstanceContext
from tritonpy.api.scheduler import UNBOUNDED
from tritonpy_types import Batch

if TYPE_CHECKING:
    from tritonpy.runners.inline_policy import InlinePolicy
    from tritonpy.runners.thread_pool import ThreadPool
    from tritonpy.runners.wakeups import Wakeups


@mypyc_attr(allow_interpreted_subclasses=True)
class Slot:
    """The state of an instance, on whose `wakeup` its thread blocks until a batch is available.

    `wakeup` is a plain lock: it is released to wake and acquired to wait. It costs a tenth of a
    `threading.Condition`.
    """

    __slots__ = (
        "assigned",
        "context",
        "drained",
        "draining",
        "idle",
        "index",
        "joined",
        "name",
        "no_more_work",
        "open",
        "until_ns",
        "wakeup",
    )

    def __init__(self, context: InstanceContext) -> None:
        self.context = context
        self.index = context.index
        self.name = context.name
        self.open = 0  # requests that the instance has not finished
        self.assigned: Batch | None = None  # taken by the dispatcher for the thread to execute
        self.joined: list[Batch] = []  # batches that the backend took during an execution
        self.idle = False
        self.draining = False  # gets only work that is bound to it
        self.no_more_work = False  # gets no work at all
        self.drained = False  # is draining and has finished all of its work
        self.until_ns = 0  # while idle: when it checks again by itself, 0 for never
        self.wakeup = threading.Lock()
        self.wakeup.acquire()

    def wake(self) -> None:
        """Wake the thread that runs the instance; called under the model's lock."""
        self.wakeup.release()

    def close(self) -> None:
        """Record that the model is closed; called under the model's lock while idle."""
        self.wake()

    def can_run_inline(self) -> bool:
        """Return whether `run` may replace `wake` in this thread; called under the model's lock."""
        return False

    def run(self, batch: Batch) -> None:
        """Execute `batch` and other waiting requests; called without any lock."""
        raise NotImplementedError(f"{type(self).__name__} runs only on its own thread")

    def capacity(self) -> int:
        """Return how many more requests the instance may hold."""
        if self.no_more_work:
            return 0
        bound = self.context.max_open
        return UNBOUNDED if bound is None else bound - self.open


class PooledSlot(Slot):
    """The slot of an instance that occupies a pooled thread only while it has work.

    From a wake-up until it is marked idle, the instance has one owner. This is either the thread
    that calls `work` or the event loop, which calls `run` at the end of an iteration while
    `inline_policy` has candidates. `ended` is called if the model closes while the instance has no
    owner.
    """

    __slots__ = ("_ended", "_inline_policy", "_run", "_threads", "_wakeups", "_work", "parked")

    def __init__(
        self,
        context: InstanceContext,
        threads: ThreadPool,
        wakeups: Wakeups,
        work: Callable[[], None],
        run: Callable[[Batch | None], None],
        ended: Callable[[], None],
        inline_policy: InlinePolicy | None = None,
    ) -> None:
        super().__init__(context)
        self.parked = False  # a thread waits on `wakeup` for a time that the scheduler named
        self._threads = threads
        self._wakeups = wakeups
        self._work = work
        self._run = run
        self._ended = ended
        self._inline_policy = inline_policy

    def wake(self) -> None:
        if self.can_run_inline():
            self._wakeups.soon(self._run_waiting)
        else:
            self.wake_thread()

    def wake_thread(self) -> None:
        """Let a thread own the instance; called under the model's lock."""
        if self.parked:
            self.parked = False
            self.wakeup.release()
        else:
            self._threads.run(self._work)

    def close(self) -> None:
        if self.parked:
            self.wake_thread()
        else:
            self._ended()

    def can_run_inline(self) -> bool:
        policy = self._inline_policy
        return policy is not None and policy.has_candidates and self._wakeups.is_on_loop()

    def run(self, batch: Batch) -> None:
        self._run(batch)

    def continue_on_loop(self) -> bool:
        """Run again in the next iteration of the event loop; return False if that is impossible."""
        return self._wakeups.in_next_iteration(self._run_waiting)

    def _run_waiting(self) -> None:
        self._run(None)
