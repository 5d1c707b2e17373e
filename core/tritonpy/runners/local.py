"""Runs the instances of a model in this process: a thread for each."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tritonpy.api.backend import Backend, InstanceContext, ModelContext
from tritonpy.api.rate_limiter import RateLimiter
from tritonpy.api.scheduler import UNBOUNDED
from tritonpy.runners.dispatcher import Dispatcher
from tritonpy.runners.slot import Slot
from tritonpy.types import Batch

log = logging.getLogger("tritonpy.instance")


@dataclass(frozen=True, slots=True)
class BatchGuards:
    """What the model does round an execution: `admit` removes requests that turn out invalid, `fail` answers the rest with an error."""

    admit: Callable[[Batch], bool]
    fail: Callable[[Batch, BaseException], None]


class LocalRunner:
    """Starts, feeds and ends the instances. An instance is built, run and closed on its own thread."""

    def __init__(
        self,
        model: ModelContext,
        backend: type[Backend],
        dispatcher: Dispatcher,
        limiter: RateLimiter,
        guards: BatchGuards,
    ) -> None:
        self._model = model
        self._backend = backend
        self._dispatcher = dispatcher
        self._limiter = limiter
        self._guards = guards
        self._threads: list[threading.Thread] = []
        self.instances: list[Backend] = []

    def start(self, contexts: Sequence[InstanceContext]) -> None:
        """Build every instance and return when all are ready; raises what the first failing one raised: then call `stop`."""
        starts = [_Start(context) for context in contexts]
        for start in starts:
            start.thread = threading.Thread(target=self._run, args=(start,), name=start.context.name, daemon=True)
            start.thread.start()
        for start in starts:
            start.done.wait()
        self._threads = [start.thread for start in starts]
        self.instances = [start.backend for start in starts if start.backend is not None]
        failed = next((start.error for start in starts if start.error is not None), None)
        if failed is not None:
            raise failed
        if any(context.max_open is not None for context in contexts):
            self._dispatcher.bound()

    def stop(self) -> None:
        """End every thread after its current execution, close the instances, and free what they shared."""
        self._dispatcher.close()
        for thread in self._threads:
            thread.join()
            self._limiter.unregister(thread.name)
        self.instances = []
        self._backend.unload(self._model.shared)
        self._model.shared = None

    def _run(self, start: _Start) -> None:
        try:
            start.backend = backend = self._backend(self._model, start.context)
        except BaseException as error:
            start.error = error
            return
        finally:
            start.done.set()
        slot = Slot(start.context)
        start.context.take_more = lambda count: self._next_batch(slot, count)
        self._serve(slot, backend)
        try:
            backend.close()
        except Exception:
            log.exception("instance %s failed to close", slot.name)

    def _serve(self, slot: Slot, backend: Backend) -> None:
        dispatcher, limiter = self._dispatcher, self._limiter
        while dispatcher.wait_ready(slot):
            limiter.acquire(slot.name)
            try:
                batch = self._next_batch(slot, UNBOUNDED)
                if batch is not None:
                    self._execute(backend, batch)
                    # The batch must not outlive its execution in this frame: its buffers are the client's.
                    del batch
            finally:
                limiter.release(slot.name)

    def _next_batch(self, slot: Slot, count: int) -> Batch | None:
        batch = self._dispatcher.take(slot, count)
        if batch is None:
            return None
        batch.model = self._model
        return batch if self._guards.admit(batch) else None

    def _execute(self, backend: Backend, batch: Batch) -> None:
        try:
            backend.execute(batch)
        except BaseException as error:
            self._guards.fail(batch, error)


class _Start:
    """An instance on its way up."""

    def __init__(self, context: InstanceContext) -> None:
        self.context = context
        self.done = threading.Event()
        self.backend: Backend | None = None
        self.error: BaseException | None = None
        self.thread: threading.Thread
