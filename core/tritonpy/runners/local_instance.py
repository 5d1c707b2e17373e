"""One instance of this process, with a thread of its own: built, run and closed there."""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Future

from tritonpy.api.backend import Backend, InstanceContext, ModelContext, check_returned
from tritonpy.api.scheduler import UNBOUNDED
from tritonpy.errors import Unavailable
from tritonpy.runners.dispatcher import Dispatcher
from tritonpy.runners.guards import BatchGuards
from tritonpy.runners.host_policies import HostPolicy
from tritonpy.runners.slot import Slot
from tritonpy.runners.turn import Turn
from tritonpy.runners.warmup import MakeSamples, warm_up
from tritonpy.types import Batch

log = logging.getLogger("tritonpy.instance")


class LocalInstance(ABC):
    """What instances of this process have in common, whichever threads they run on.

    `start` begins to build one, `wait_built` reports how that ended. Then it serves, and `leave` or `stop` ends it; `forget` is called when it is no more.
    """

    slot: Slot

    def __init__(
        self,
        model: ModelContext,
        kind: type[Backend],
        context: InstanceContext,
        dispatcher: Dispatcher,
        guards: BatchGuards,
        samples: MakeSamples | None,
        forget: Callable[[], None],
    ) -> None:
        self.context = context
        self._model = model
        self._kind = kind
        self._dispatcher = dispatcher
        self._guards = guards
        self._samples = samples
        self._forget = forget
        self._serves = False
        self._backend: Backend | None = None

    @property
    def backend(self) -> Backend:
        """What was built. Raises Unavailable when it is closed."""
        backend = self._backend
        if backend is None:
            raise Unavailable(f"instance {self.context.name} is closed")
        return backend

    @abstractmethod
    def start(self, *, alone: bool) -> None:
        """Begin to build; `alone`: no other instance is built at the same time."""

    @abstractmethod
    def wait_built(self) -> BaseException | None:
        """Return what the backend raised, when the instance is built or cannot be."""

    @abstractmethod
    def alive(self) -> bool:
        """Return whether it was built and is not closed."""

    @abstractmethod
    def serve(self) -> None:
        """Take requests from now on; an instance that is passive takes none."""

    def keep_off_loop(self) -> None:
        """Let the event loop execute nothing any more: the instance is about to end."""

    @abstractmethod
    def leave(self) -> Future[None]:
        """End when everything that is bound to the instance is done; return what is done then."""

    @abstractmethod
    def stop(self) -> None:
        """End as soon as nothing executes, and wait for that; the dispatcher is closed, no request is open."""

    def _made_ready(self) -> Backend:
        """Return an instance that may serve: built and warmed up."""
        backend = self._kind(self._model, self.context)
        if self._samples is not None and not self.context.passive:
            try:
                warm_up(self._model, self.slot, self._samples(), backend.execute)
            except BaseException:
                self._close_backend(backend)
                raise
        self.context.take_more = self._take_more
        return backend

    def _close_backend(self, backend: Backend) -> None:
        try:
            backend.close()
        except Exception:
            log.exception("instance %s failed to close", self.context.name)

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


class ThreadInstance(LocalInstance):
    """An instance that is a thread: what a backend makes on it stays there, such as the context of a GPU.

    `turn` is None where no rate limiter has to be asked. The thread is bound as `policy` says.
    """

    def __init__(
        self,
        model: ModelContext,
        kind: type[Backend],
        context: InstanceContext,
        dispatcher: Dispatcher,
        guards: BatchGuards,
        samples: MakeSamples | None,
        forget: Callable[[], None],
        turn: Turn | None,
        policy: HostPolicy | None,
    ) -> None:
        super().__init__(model, kind, context, dispatcher, guards, samples, forget)
        self.slot = Slot(context)
        self._built: Future[None] = Future()
        self._over: Future[None] = Future()
        self._turn = turn
        self._policy = policy
        self._word = threading.Event()  # whether it is to serve is known
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._live, name=context.name, daemon=True)

    def start(self, *, alone: bool) -> None:
        self._thread.start()

    def wait_built(self) -> BaseException | None:
        return self._built.exception()

    def alive(self) -> bool:
        return self._thread.is_alive()

    def serve(self) -> None:
        self._serves = True
        self._word.set()

    def leave(self) -> Future[None]:
        if self._serves and not self.context.passive:
            self._dispatcher.leave(self.slot)
        self._ended.set()
        self._word.set()
        return self._over

    def stop(self) -> None:
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
            self._over.set_result(None)

    def _build_and_serve(self) -> None:
        if self._policy is not None:  # the threads that the backend starts belong there too
            self._policy.bind(self.context.name)
        try:
            self._backend = backend = self._made_ready()
        except BaseException as error:
            self._built.set_exception(error)
            return
        self._built.set_result(None)
        self._word.wait()
        if self._serves and not self.context.passive:
            self._serve(backend)
        self._ended.wait()
        self._close_backend(backend)
        # What it holds goes with it at once: this object is part of circles, which the collector finds late, or never if they are of the start-up.
        self._backend = None

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
        if batch is not None:
            self._execute(backend, batch)


def _is_open(batch: Batch) -> bool:
    return not all(request.answered for request in batch.requests)
