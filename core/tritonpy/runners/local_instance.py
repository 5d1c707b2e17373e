"""One instance that is a thread of this process: built, run and closed there."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from time import thread_time_ns

from tritonpy.api.backend import Backend, InstanceContext, ModelContext, check_returned
from tritonpy.api.scheduler import UNBOUNDED
from tritonpy.clock import now_ns
from tritonpy.errors import Unavailable
from tritonpy.runners.dispatcher import Dispatcher
from tritonpy.runners.guards import BatchGuards
from tritonpy.runners.host_policies import HostPolicy
from tritonpy.runners.inline_slot import InlineSlot
from tritonpy.runners.quickness import SLOW_NS, TOGETHER_NS, Quickness, Size
from tritonpy.runners.rings import Rings
from tritonpy.runners.slot import Slot
from tritonpy.runners.turn import Turn
from tritonpy.runners.warmup import MakeSamples, warm_up
from tritonpy.types import Batch

log = logging.getLogger("tritonpy.instance")


class LocalInstance:
    """`built` is done when the instance can execute, or with what its backend raised, also once it is closed; `over` when the thread is about to end.

    `turn` is None where no rate limiter has to be asked; `forget` is called when the instance is no more. With `rings` the event loop may
    execute what came in one of its turns, where the instance is known to be quick (`Quickness`): then the thread sleeps.
    """

    def __init__(
        self,
        model: ModelContext,
        kind: type[Backend],
        context: InstanceContext,
        dispatcher: Dispatcher,
        guards: BatchGuards,
        samples: MakeSamples | None,
        turn: Turn | None,
        policy: HostPolicy | None,
        forget: Callable[[], None],
        rings: Rings | None = None,
    ) -> None:
        self.context = context
        self._quickness: Quickness | None = None
        self.slot = Slot(context)
        if rings is not None:
            self._quickness = Quickness()
            self.slot = InlineSlot(context, rings, self._quickness, self._run_on_loop)
        self.built: Future[Backend] = Future()
        self.over: Future[None] = Future()
        self._model = model
        self._kind = kind
        self._dispatcher = dispatcher
        self._guards = guards
        self._samples = samples
        self._turn = turn
        self._policy = policy
        self._forget = forget
        self._word = threading.Event()  # whether it is to serve is known
        self._ended = threading.Event()
        self._serves = False
        self._backend: Backend
        self._thread = threading.Thread(target=self._live, name=context.name, daemon=True)

    def start(self) -> None:
        """Begin to build."""
        self._thread.start()

    def alive(self) -> bool:
        """Say whether its thread runs."""
        return self._thread.is_alive()

    def serve(self) -> None:
        """Take requests from now on; an instance that is passive takes none."""
        self._serves = True
        self._word.set()

    def keep_off_loop(self) -> None:
        """Let the thread execute everything from now on: it is about to end."""
        if self._quickness is not None:
            self._quickness.give_up()

    def leave(self) -> None:
        """End when everything that is bound to the instance is done."""
        if self._serves and not self.context.passive:
            self._dispatcher.leave(self.slot)
        self._ended.set()
        self._word.set()

    def stop(self) -> None:
        """End as soon as nothing executes, and wait for that; the dispatcher is closed, no request is open."""
        self._ended.set()
        self._word.set()
        if self._turn is not None:
            self._turn.give_up()
        if self._thread.ident is None:
            self._forget()
        else:
            self._thread.join()

    def _live(self) -> None:
        try:
            self._build_and_serve()
        finally:
            self._forget()
            self.over.set_result(None)

    def _build_and_serve(self) -> None:
        try:
            backend = self._made_ready()
        except BaseException as error:
            self.built.set_exception(error)
            return
        self.slot.context.take_more = self._take_more
        self._backend = backend
        self.built.set_result(backend)
        self._word.wait()
        if self._serves and not self.context.passive:
            self._serve(backend)
        self._ended.wait()
        self._close(backend)
        # What it holds goes with it at once: this object is part of circles, which the collector finds late, or never if they are of the start-up.
        self.built = _gone(self.context.name)
        del self._backend

    def _made_ready(self) -> Backend:
        """Return an instance that may serve: built and warmed up; its thread, and those that the backend starts, where they belong."""
        if self._policy is not None:
            self._policy.bind(self.context.name)
        backend = self._kind(self._model, self.context)
        if self._samples is not None and not self.context.passive:
            try:
                warm_up(self._model, self.slot, self._samples(), backend.execute)
            except BaseException:
                self._close(backend)
                raise
        return backend

    def _close(self, backend: Backend) -> None:
        try:
            backend.close()
        except Exception:
            log.exception("instance %s failed to close", self.context.name)

    def _serve(self, backend: Backend) -> None:
        serve = self._serve_until_closed if self._turn is None else self._serve_in_turns
        while True:
            try:
                serve(backend)
            except (
                Exception
            ) as error:  # a scheduler or limiter that raises must not leave its requests without an answer
                rests = self._dispatcher.rest(self.slot)  # first: who comes while the others are answered has to ring
                self._guards.drop(error)
                if rests:
                    self._dispatcher.wait_ring(self.slot)
            else:
                return

    def _serve_until_closed(self, backend: Backend) -> None:
        dispatcher, slot = self._dispatcher, self.slot
        while dispatcher.wait_ready(slot):
            self._execute_next(backend)

    def _serve_in_turns(self, backend: Backend) -> None:
        dispatcher, slot, turn = self._dispatcher, self.slot, self._turn
        assert turn is not None, "only an instance with turns is served in turns: this is a bug"  # noqa: S101
        while dispatcher.wait_ready(slot):
            try:
                may = turn.begin()
                while may:
                    self._execute_next(backend)
                    # It stands in line before it lets go: otherwise who waits would always come before it, whatever the priorities.
                    may = dispatcher.wants(slot) and turn.again()
            finally:
                turn.end()

    def _execute_next(self, backend: Backend) -> None:
        batch = self._next_batch(UNBOUNDED)
        if batch is None:
            return
        if self._quickness is None or self._dispatcher.waiting:
            self._execute(backend, batch)
        else:  # nothing else came, as with what the event loop may run
            self._learn(self._quickness, backend, batch)

    def _run_on_loop(self, batch: Batch | None) -> None:
        """Execute `batch` and what else waits, as far as it will be quick; leave the rest to the thread."""
        quickness, slot = self._quickness, self.slot
        assert quickness is not None, "only an instance with rings is run by the loop: this is a bug"  # noqa: S101
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
        slot.bell.release()

    def _cut_on_loop(self, quickness: Quickness) -> Batch | None:
        if not quickness.hopeful:
            return None
        try:
            return self._dispatcher.take(self.slot, UNBOUNDED)
        except Exception as error:  # as in `_serve`
            self._guards.drop(error)
            return None

    def _runs_here(self, quickness: Quickness, batch: Batch) -> bool:
        """Execute `batch` on the loop if it will be quick; say whether."""
        size = Size.of(batch)
        if not quickness.sure(size) or any([request.unchecked_strings for request in batch.requests]):
            return False
        batch.model = self._model
        begin_ns, busy_ns = now_ns(), thread_time_ns()
        self._execute(self._backend, batch)
        ns = now_ns() - begin_ns
        # It takes a microsecond to ask how long it was busy, and no longer than this it was.
        quickness.took(size, ns if ns <= SLOW_NS else thread_time_ns() - busy_ns, ns, on_loop=True)
        return True

    def _learn(self, quickness: Quickness, backend: Backend, batch: Batch) -> None:
        size = Size.of(batch)
        begin_ns, busy_ns = now_ns(), thread_time_ns()
        self._execute(backend, batch)
        quickness.took(size, thread_time_ns() - busy_ns, now_ns() - begin_ns, on_loop=False)

    def _next_batch(self, count: int) -> Batch | None:
        batch, self.slot.handed = self.slot.handed or self._dispatcher.take(self.slot, count), None
        if batch is None:
            return None
        batch.model = self._model
        return batch if self._guards.admit(batch) else None

    def _take_more(self, count: int) -> Batch | None:
        batch = self._next_batch(count)
        if batch is not None:
            batch.executing = True
            self.slot.joined = [*filter(_is_open, self.slot.joined), batch]
        return batch

    def _execute(self, backend: Backend, batch: Batch) -> None:
        slot = self.slot
        batch.executing = True
        try:
            check_returned(backend.execute(batch))  # type: ignore[func-returns-value]
        except BaseException as error:
            self._guards.fail((batch, *slot.joined), error)
        batch.executing = False
        if slot.joined:
            for joined in slot.joined:
                joined.executing = False
            slot.joined = []


def _is_open(batch: Batch) -> bool:
    return not all(request.answered for request in batch.requests)


def _gone(name: str) -> Future[Backend]:
    gone: Future[Backend] = Future()
    gone.set_exception(Unavailable(f"instance {name} is closed"))
    return gone
