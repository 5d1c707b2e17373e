"""One instance of this process that runs on any thread: it owns none while it is idle."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from time import thread_time_ns
from typing import TYPE_CHECKING

from tritonpy.api.backend import Backend, InstanceContext, ModelContext
from tritonpy.api.scheduler import UNBOUNDED
from tritonpy.clock import now_ns
from tritonpy.runners.dispatcher import Dispatcher, Step
from tritonpy.runners.guards import BatchGuards
from tritonpy.runners.local_instance import LocalInstance
from tritonpy.runners.quickness import SLOW_NS, TOGETHER_NS, Quickness, Size
from tritonpy.runners.rings import Rings
from tritonpy.runners.slot import PooledSlot
from tritonpy.runners.thread_pool import ThreadPool
from tritonpy.runners.turn import PooledTurn
from tritonpy.runners.warmup import MakeSamples
from tritonpy.types import Batch

if TYPE_CHECKING:
    from tritonpy.api.rate_limiter import RateLimiter


def may_share_threads(model: ModelContext, backend: type[Backend], context: InstanceContext) -> bool:
    """Return whether an instance may run on threads that others use too: the backend can be called from any, and its executions end by themselves."""
    waits = model.config.model_transaction_policy.decoupled
    return backend.runs_on_any_thread and context.kind == "CPU" and not waits


class PooledInstance(LocalInstance):
    """An instance that has a thread of `threads` while it has something to do; with `inline` the event loop may execute for it (`Quickness`).

    `limiter` and `permit` are given where a rate limiter has to be asked.
    """

    slot: PooledSlot

    def __init__(
        self,
        model: ModelContext,
        kind: type[Backend],
        context: InstanceContext,
        dispatcher: Dispatcher,
        guards: BatchGuards,
        samples: MakeSamples | None,
        forget: Callable[[], None],
        threads: ThreadPool,
        rings: Rings,
        inline: bool,
        limiter: RateLimiter | None = None,
        permit: str = "",
    ) -> None:
        super().__init__(model, kind, context, dispatcher, guards, samples, forget)
        self._threads = threads
        self._quickness = Quickness() if inline else None
        self._turn: PooledTurn | None = None
        if limiter is not None:
            self._turn = PooledTurn(limiter, permit, dispatcher.lock, lambda: threads.run(self._work))
        self._over = threading.Lock()  # released when the instance has no owner any more
        self._over.acquire()
        self.slot = PooledSlot(
            context, threads, rings, self._work, self._run_on_loop, self._over.release, self._quickness
        )
        self._builder: threading.Thread | None = None
        self._error: BaseException | None = None
        self._gone: Future[None] | None = None  # there is one when the instance leaves
        self._closed = False

    def start(self, *, alone: bool) -> None:
        if alone:
            self._build()
        else:
            self._builder = threading.Thread(target=self._build, name=self.context.name, daemon=True)
            self._builder.start()

    def wait_built(self) -> BaseException | None:
        builder, self._builder = self._builder, None
        if builder is not None:
            builder.join()
        return self._error

    def _build(self) -> None:
        try:
            self._backend = self._made_ready()
        except BaseException as error:
            self._error = error

    def alive(self) -> bool:
        return self._backend is not None

    def serve(self) -> None:
        self._serves = not self.context.passive
        if not self._serves:
            return
        if self._dispatcher.rest(self.slot):
            self._dispatcher.wake()
        else:
            self._over.release()

    def keep_off_loop(self) -> None:
        if self._quickness is not None:
            self._quickness.give_up()

    def leave(self) -> Future[None]:
        gone: Future[None] = Future()
        self._gone = gone
        if self._serves:
            self._dispatcher.leave(self.slot)
        else:
            self._threads.run(self._close)
        return gone

    def stop(self) -> None:
        self.wait_built()
        if self._turn is not None and self._turn.give_up():
            self._over.release()
        if self._serves:
            self._over.acquire()
        elif self._gone is not None:
            self._gone.result()
        self._close()

    def _close(self) -> None:
        """Close the backend, once, and wake up the threads that wait for the end."""
        with self._dispatcher.lock:
            if self._closed:
                return
            self._closed = True
        # What it holds goes with it at once: this object is part of circles, which the collector finds late, or never if they are of the start-up.
        backend, self._backend = self._backend, None
        if backend is not None:
            self._close_backend(backend)
        self._forget()
        if self._gone is not None:
            self._gone.set_result(None)

    def _end(self) -> None:
        """End as the last owner."""
        if self._gone is not None:
            self._close()
        self._over.release()

    def _work(self) -> None:
        """Execute what there is, as the owner; called on a thread of the pool."""
        try:
            self._execute_all()
        except Exception as error:  # a scheduler or limiter that raises must not leave its requests without an answer
            rests = self._dispatcher.rest(self.slot)  # first: who comes while the others are answered has to ring
            self._guards.drop(error)
            if not rests:
                self._end()

    def _execute_all(self) -> None:
        dispatcher, slot, turn, threads = self._dispatcher, self.slot, self._turn, self._threads
        if turn is not None and turn.held and not self._execute_in_turn(turn):
            return
        while (step := dispatcher.next_step(slot)) is Step.EXECUTE:
            if turn is None:
                self._execute_next()
            elif not self._execute_in_turn(turn):
                return
            if threads.saturated:  # other instances have none
                threads.run(self._work)
                return
        if step is Step.END:
            self._end()

    def _execute_in_turn(self, turn: PooledTurn) -> bool:
        """Execute while the limiter lets the instance; False where it has to wait, and then it has no owner."""
        may = turn.held or turn.take()
        while may:
            try:
                self._execute_next()
            except BaseException:
                turn.release()
                raise
            if not self._dispatcher.wants(self.slot):
                turn.release()
                return True
            # It stands in line before it lets go: otherwise who waits would always come before it, whatever the priorities.
            may = turn.again()
        self._dispatcher.wake()  # somebody else may be free to do what it cannot do yet
        return False

    def _execute_next(self) -> None:
        batch = self._next_batch(UNBOUNDED)
        if batch is None:
            return
        if self._quickness is None or self._dispatcher.waiting:
            self._execute(self.backend, batch)
        else:  # nothing else came, as with what the event loop may run
            self._learn(self._quickness, batch)

    def _run_on_loop(self, batch: Batch | None) -> None:
        """Execute `batch` and what else waits, as far as it will be quick, as the owner; leave the rest to a thread."""
        quickness, slot = self._quickness, self.slot
        assert quickness is not None, "only an inline instance is run by the loop: this is a bug"  # noqa: S101
        end_ns = now_ns() + TOGETHER_NS
        while True:
            batch = batch or self._cut_on_loop(quickness)
            if batch is None or not self._runs_here(quickness, batch):
                slot.handed = batch
                break
            if self._dispatcher.rest_if_nothing_waits(slot):
                return
            batch = None
            if now_ns() > end_ns:
                break
        self._dispatcher.hand_over(slot)

    def _cut_on_loop(self, quickness: Quickness) -> Batch | None:
        if not quickness.hopeful:
            return None
        try:
            return self._dispatcher.take(self.slot, UNBOUNDED)
        except Exception as error:  # as in `_work`
            self._guards.drop(error)
            return None

    def _runs_here(self, quickness: Quickness, batch: Batch) -> bool:
        """Execute `batch` on the loop if it will be quick; say whether."""
        size = Size.of(batch)
        if not quickness.sure(size) or any([request.unchecked_strings for request in batch.requests]):
            return False
        batch.model = self._model
        begin_ns, busy_ns = now_ns(), thread_time_ns()
        self._execute(self.backend, batch)
        ns = now_ns() - begin_ns
        # It takes a microsecond to ask how long it was busy, and no longer than this it was.
        quickness.took(size, ns if ns <= SLOW_NS else thread_time_ns() - busy_ns, ns, on_loop=True)
        return True

    def _learn(self, quickness: Quickness, batch: Batch) -> None:
        size = Size.of(batch)
        begin_ns, busy_ns = now_ns(), thread_time_ns()
        self._execute(self.backend, batch)
        quickness.took(size, thread_time_ns() - busy_ns, now_ns() - begin_ns, on_loop=False)
