"""Instances in this process: the common base class, and instances with a thread of their own."""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

from tritonpy.api.backend import Backend, check_returned
from tritonpy.api.contexts import InstanceContext, ModelContext
from tritonpy.api.scheduler import UNBOUNDED
from tritonpy.runners.batch_callbacks import BatchCallbacks
from tritonpy.runners.dispatcher import Dispatcher
from tritonpy.runners.host_policies import HostPolicy
from tritonpy.runners.rate_limit_lease import RateLimitLease
from tritonpy.runners.slot import Slot
from tritonpy.runners.warmup import MakeSamples, warm_up
from tritonpy_types import Batch
from tritonpy_types.errors import Unavailable

log = logging.getLogger("tritonpy.instance")


S = TypeVar("S", bound=Slot)


class LocalInstance(ABC, Generic[S]):
    """Base class of instances in this process, whichever threads they run on.

    `start` begins to build the instance and `wait_built` waits for the result. It then serves until
    `drain` or `stop` ends it. `on_end` is called after its end.
    """

    slot: S

    def __init__(
        self,
        model: ModelContext,
        kind: type[Backend],
        context: InstanceContext,
        dispatcher: Dispatcher,
        callbacks: BatchCallbacks,
        samples: MakeSamples | None,
        on_end: Callable[[], None],
    ) -> None:
        self.context = context
        self._model = model
        self._kind = kind
        self._dispatcher = dispatcher
        self._callbacks = callbacks
        self._samples = samples
        self._on_end = on_end
        self._is_serving = False
        self._backend: Backend | None = None

    @property
    def backend(self) -> Backend:
        """The built backend. Raises `Unavailable` if the instance is closed."""
        backend = self._backend
        if backend is None:
            raise Unavailable(f"instance {self.context.name} is closed")
        return backend

    @abstractmethod
    def start(self, *, alone: bool) -> None:
        """Begin to build; `alone` if no other instance is being built."""

    @abstractmethod
    def wait_built(self) -> BaseException | None:
        """Wait until the instance is built or has failed; return the backend's error or None."""

    @abstractmethod
    def alive(self) -> bool:
        """Return whether the instance is built and not closed."""

    @abstractmethod
    def serve(self) -> None:
        """Accept requests from now on; a passive instance accepts none."""

    def disable_inline(self) -> None:
        """Stop inline execution: the instance is about to end."""

    @abstractmethod
    def drain(self) -> Future[None]:
        """End when everything bound to the instance is done; return a future of that end."""

    @abstractmethod
    def stop(self) -> None:
        """End after the current execution and wait for that.

        The dispatcher is closed and no request is in flight.
        """

    def _build_backend(self) -> Backend:
        """Return a backend that is built and warmed up."""
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
        batch, self.slot.assigned = (
            self.slot.assigned or self._dispatcher.take(self.slot, count),
            None,
        )
        if batch is None:
            return None
        batch.model = self._model
        return batch if self._callbacks.admit(batch) else None

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
            execute: Callable[[Batch], object] = backend.execute
            check_returned(execute(batch))
        except BaseException as error:
            self._callbacks.fail((batch, *slot.joined), error)
        batch.executing = False
        if slot.joined:
            for joined in slot.joined:
                joined.executing = False
            slot.joined = []


class ThreadInstance(LocalInstance[Slot]):
    """An instance with its own thread.

    Resources of the backend, such as a GPU context, stay on that thread. `lease` is None if the
    rate limiter does not limit the instance. The thread is bound by `policy`.
    """

    def __init__(
        self,
        model: ModelContext,
        kind: type[Backend],
        context: InstanceContext,
        dispatcher: Dispatcher,
        callbacks: BatchCallbacks,
        samples: MakeSamples | None,
        on_end: Callable[[], None],
        lease: RateLimitLease | None,
        policy: HostPolicy | None,
    ) -> None:
        super().__init__(model, kind, context, dispatcher, callbacks, samples, on_end)
        self.slot = Slot(context)
        self._built: Future[None] = Future()
        self._end_future: Future[None] = Future()
        self._lease = lease
        self._policy = policy
        self._may_serve = threading.Event()  # set once it is known whether the instance serves
        self._ended = threading.Event()
        self._serving_thread = threading.Thread(target=self._run, name=context.name, daemon=True)

    def start(self, *, alone: bool) -> None:
        self._serving_thread.start()

    def wait_built(self) -> BaseException | None:
        return self._built.exception()

    def alive(self) -> bool:
        return self._serving_thread.is_alive()

    def serve(self) -> None:
        self._is_serving = True
        self._may_serve.set()

    def drain(self) -> Future[None]:
        if self._is_serving and not self.context.passive:
            self._dispatcher.drain(self.slot)
        self._ended.set()
        self._may_serve.set()
        return self._end_future

    def stop(self) -> None:
        self._ended.set()
        self._may_serve.set()
        if self._lease is not None:
            self._lease.cancel()
        if self._serving_thread.ident is None:
            self._on_end()
        else:
            self._serving_thread.join()

    def _run(self) -> None:
        try:
            self._build_and_serve()
        finally:
            self._on_end()
            self._end_future.set_result(None)

    def _build_and_serve(self) -> None:
        if self._policy is not None:  # first, so that threads of the backend inherit the binding
            self._policy.bind(self.context.name)
        try:
            self._backend = backend = self._build_backend()
        except BaseException as error:
            self._built.set_exception(error)
            return
        self._built.set_result(None)
        self._may_serve.wait()
        if self._is_serving and not self.context.passive:
            self._serve(backend)
        self._ended.wait()
        self._close_backend(backend)
        # Free the backend's resources now. This object is part of reference cycles, which the
        # collector finds late, or never if they date from startup.
        self._backend = None

    def _serve(self, backend: Backend) -> None:
        serve = self._serve_until_closed if self._lease is None else self._serve_with_leases
        while True:
            try:
                serve(backend)
            except Exception as error:  # fail waiting requests when a scheduler or limiter raises
                # First, so that requests that arrive meanwhile wake it.
                rests = self._dispatcher.mark_idle(self.slot)
                self._callbacks.drop(error)
                if rests:
                    self._dispatcher.wait_wakeup(self.slot)
            else:
                return

    def _serve_until_closed(self, backend: Backend) -> None:
        dispatcher, slot = self._dispatcher, self.slot
        while dispatcher.wait_ready(slot):
            self._execute_next(backend)

    def _serve_with_leases(self, backend: Backend) -> None:
        dispatcher, slot, lease = self._dispatcher, self.slot, self._lease
        assert lease is not None, "an instance without a lease is served with leases: this is a bug"  # noqa: S101
        while dispatcher.wait_ready(slot):
            try:
                may = lease.acquire()
                while may:
                    self._execute_next(backend)
                    # Queue before releasing. Otherwise a waiting instance would always come first,
                    # whatever the priorities.
                    may = dispatcher.has_batch_for(slot) and lease.renew()
            finally:
                lease.release()

    def _execute_next(self, backend: Backend) -> None:
        batch = self._next_batch(UNBOUNDED)
        if batch is not None:
            self._execute(backend, batch)


def _is_open(batch: Batch) -> bool:
    return not all(request.finished for request in batch.requests)
