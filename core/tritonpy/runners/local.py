"""Runs the instances of a model in this process: a thread for each."""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tritonpy.api.backend import Backend, InstanceContext, ModelContext
from tritonpy.api.rate_limiter import RateLimiter
from tritonpy.api.scheduler import UNBOUNDED
from tritonpy.runners.dispatcher import Dispatcher
from tritonpy.runners.guards import BatchGuards
from tritonpy.runners.readiness import ReadinessCheck
from tritonpy.runners.runner import Runner
from tritonpy.runners.slot import Slot
from tritonpy.types import Batch, InferRequest

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelInstanceGroup

log = logging.getLogger("tritonpy.instance")
_serial = itertools.count(1)


class LocalRunner(Runner):
    """Starts, feeds and ends the instances. An instance is built, run and closed on its own thread."""

    def __init__(
        self,
        model: ModelContext,
        backend: type[Backend],
        dispatcher: Dispatcher,
        limiter: RateLimiter,
        guards: BatchGuards,
        cancel_calls: Callable[[InferRequest], None],
    ) -> None:
        self._model = model
        self._backend = backend
        self._dispatcher = dispatcher
        self._limiter = limiter
        self._guards = guards
        self._cancel_calls = cancel_calls
        self._threads: list[threading.Thread] = []
        self._permits: list[str] = []
        self._instances: list[Backend] = []
        self._readiness = ReadinessCheck(self._ask, model.log)

    def start(self, instances: Sequence[tuple[InstanceContext, ModelInstanceGroup]]) -> None:
        starts = [_Start(context) for context, _ in instances]
        for start, (context, group) in zip(starts, instances, strict=True):
            self._limiter.register(start.permit, context.device_id, group)
            self._permits.append(start.permit)
        for start in starts:
            start.thread = threading.Thread(target=self._run, args=(start,), name=start.context.name, daemon=True)
            start.thread.start()
        for start in starts:
            start.done.wait()
        self._threads = [start.thread for start in starts]
        self._instances = [start.backend for start in starts if start.backend is not None]
        failed = next((start.error for start in starts if start.error is not None), None)
        if failed is not None:
            raise failed
        if any(context.max_open is not None for context, _ in instances):
            self._dispatcher.bound()

    def stop(self) -> None:
        self._dispatcher.close()
        for thread in self._threads:
            thread.join()
        for permit in self._permits:
            self._limiter.unregister(permit)
        self._instances = []
        self._backend.unload(self._model.shared)
        self._model.shared = None

    def alive(self) -> bool:
        return all(thread.is_alive() for thread in self._threads)

    def is_ready(self) -> bool:
        asks = self._backend.is_ready is not Backend.is_ready
        return self.alive() and (not asks or self._readiness.answer())

    def cancelled(self, request: InferRequest) -> None:
        self._cancel_calls(request)  # the instance itself reads the request's flag

    def _ask(self) -> bool:
        return all(instance.is_ready() for instance in self._instances)

    def _run(self, start: _Start) -> None:
        try:
            start.backend = backend = self._backend(self._model, start.context)
        except BaseException as error:
            start.error = error
            return
        finally:
            start.done.set()
        slot = Slot(start.context)
        start.context.take_more = lambda count: self._take_more(slot, count)
        self._serve(slot, backend, start.permit)
        try:
            backend.close()
        except Exception:
            log.exception("instance %s failed to close", slot.name)

    def _serve(self, slot: Slot, backend: Backend, permit: str) -> None:
        while True:
            try:
                self._serve_until_closed(slot, backend, permit)
            except (
                Exception
            ) as error:  # a scheduler or limiter that raises must not leave its requests without an answer
                self._guards.drop(error)
                self._dispatcher.wait_ring(slot)
            else:
                return

    def _serve_until_closed(self, slot: Slot, backend: Backend, permit: str) -> None:
        dispatcher, limiter = self._dispatcher, self._limiter
        permitted = threading.Lock()  # released by the limiter where it could not say yes at once
        permitted.acquire()
        while dispatcher.wait_ready(slot):
            if not limiter.acquire(permit, permitted.release):
                permitted.acquire()
            try:
                batch = self._next_batch(slot, UNBOUNDED)
                if batch is not None:
                    self._execute(slot, backend, batch)
                    # The batch must not outlive its execution in this frame: its buffers are the client's.
                    del batch
            finally:
                limiter.release(permit)

    def _next_batch(self, slot: Slot, count: int) -> Batch | None:
        batch = self._dispatcher.take(slot, count)
        if batch is None:
            return None
        batch.model = self._model
        return batch if self._guards.admit(batch) else None

    def _take_more(self, slot: Slot, count: int) -> Batch | None:
        batch = self._next_batch(slot, count)
        if batch is not None:
            batch.executing = True
            slot.joined = [*filter(_is_open, slot.joined), batch]
        return batch

    def _execute(self, slot: Slot, backend: Backend, batch: Batch) -> None:
        batch.executing = True
        try:
            backend.execute(batch)
        except BaseException as error:
            self._guards.fail((batch, *slot.joined), error)
        batch.executing = False
        if slot.joined:
            for joined in slot.joined:
                joined.executing = False
            slot.joined = []


def _is_open(batch: Batch) -> bool:
    return not all(request.answered for request in batch.requests)


class _Start:
    """An instance on its way up."""

    def __init__(self, context: InstanceContext) -> None:
        self.context = context
        # What the limiter knows the instance by: unlike its name unique, also while a version and its replacement are both loaded.
        self.permit = f"{context.name}#{next(_serial)}"
        self.done = threading.Event()
        self.backend: Backend | None = None
        self.error: BaseException | None = None
        self.thread: threading.Thread
