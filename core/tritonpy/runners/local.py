"""Runs the instances of a model in this process: on threads that instances share where the backend allows that, otherwise on a thread for each."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING

from tritonpy.api.backend import Backend, InstanceContext, ModelContext
from tritonpy.api.engine import MemoryUsage
from tritonpy.api.rate_limiter import RateLimiter
from tritonpy.errors import Unavailable
from tritonpy.runners.dispatcher import Dispatcher
from tritonpy.runners.guards import BatchGuards
from tritonpy.runners.host_policies import HostPolicies
from tritonpy.runners.inline import may_run_inline
from tritonpy.runners.local_instance import LocalInstance, ThreadInstance
from tritonpy.runners.memory_report import MemoryReport, lent, tells_memory
from tritonpy.runners.pooled_instance import PooledInstance, may_share_threads
from tritonpy.runners.readiness import ReadinessCheck
from tritonpy.runners.rings import Rings
from tritonpy.runners.runner import Newcomer, Runner
from tritonpy.runners.thread_pool import ThreadPool
from tritonpy.runners.turn import Turn
from tritonpy.runners.warmup import MakeSamples
from tritonpy.statistics.memory import summed
from tritonpy.types import InferRequest

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelInstanceGroup

_serial = itertools.count(1)


class LocalRunner(Runner):
    """Builds, feeds and ends the instances. Those without a thread of their own execute on `threads`; `background` is for questions."""

    def __init__(
        self,
        model: ModelContext,
        backend: type[Backend],
        dispatcher: Dispatcher,
        limiter: RateLimiter,
        guards: BatchGuards,
        cancel_calls: Callable[[InferRequest], None],
        threads: ThreadPool,
        background: ThreadPool,
        rings: Rings,
        samples: MakeSamples | None = None,
        policies: HostPolicies | None = None,
    ) -> None:
        self._model = model
        self._backend = backend
        self._dispatcher = dispatcher
        self._limiter = limiter
        self._guards = guards
        self._cancel_calls = cancel_calls
        self._samples = samples
        self._policies = policies or HostPolicies()
        self._threads = threads
        self._rings = rings
        self._inline = may_run_inline(model, backend)
        self._changing = threading.Lock()
        self._instances: dict[int, LocalInstance] = {}  # replaced as a whole: readers take no lock
        self._leaving: list[LocalInstance] = []
        self._stopped = False
        self._readiness = ReadinessCheck(self._ask, model.log)
        self._memory = MemoryReport(self._held, model.log, background) if tells_memory(backend) else None

    def add(self, newcomers: Sequence[Newcomer]) -> None:
        instances: dict[int, LocalInstance] = {}
        with self._changing:
            if self._stopped:
                raise Unavailable("the model was unloaded")
            try:
                for context, group in newcomers:
                    instances[context.index] = self._instance(context, group)
                _build(instances.values())
            except BaseException:
                for instance in instances.values():
                    instance.stop()
                raise
            self._instances = {**self._instances, **instances}
        if any(context.max_open is not None for context, _ in newcomers):
            self._dispatcher.bound()

    def serve(self, indexes: Collection[int]) -> None:
        for index in indexes:
            self._instances[index].serve()

    def remove(self, indexes: Collection[int]) -> list[Future[None]]:
        with self._changing:
            removed = [self._instances[index] for index in indexes]
            self._instances = {index: each for index, each in self._instances.items() if index not in indexes}
            self._leaving = [instance for instance in (*self._leaving, *removed) if instance.alive()]
            return [instance.leave() for instance in removed]

    def stop(self) -> None:
        with self._changing:
            self._stopped = True
            for instance in self._instances.values():
                instance.keep_off_loop()
            self._dispatcher.close()
            for instance in (*self._instances.values(), *self._leaving):
                instance.stop()
            self._backend.unload(self._model.shared)
            self._model.shared = None

    def alive(self) -> bool:
        return all(instance.alive() for instance in self._instances.values())

    def is_ready(self) -> bool:
        asks = self._backend.is_ready is not Backend.is_ready
        return self.alive() and (not asks or self._readiness.answer())

    def memory_usage(self) -> Sequence[MemoryUsage]:
        told = [] if self._memory is None else self._memory.latest()
        pools = list(lent(self._model.memory))
        return summed([*told, *pools]) if pools else told

    def measure_memory(self) -> None:
        if self._memory is not None:
            self._memory.renew()

    def cancelled(self, request: InferRequest) -> None:
        self._cancel_calls(request)  # the instance itself reads the request's flag

    def _instance(self, context: InstanceContext, group: ModelInstanceGroup) -> LocalInstance:
        # What the limiter knows the instance by: unlike its name unique, also while a version and its replacement are both loaded.
        permit = f"{context.name}#{next(_serial)}"
        limited = not context.passive and self._limiter.register(permit, context.device_id, group)
        policy = self._policies.of(context)
        forget = _nothing if context.passive else partial(self._limiter.unregister, permit)
        common = (self._model, self._backend, context, self._dispatcher, self._guards, self._samples, forget)
        if policy is None and may_share_threads(self._model, self._backend, context):
            limiter = self._limiter if limited else None
            inline = self._inline and not limited
            self._threads.prepare()
            return PooledInstance(*common, self._threads, self._rings, inline, limiter, permit)
        turn = Turn(self._limiter, permit, self._dispatcher.wake) if limited else None
        return ThreadInstance(*common, turn, policy)

    def _held(self) -> list[MemoryUsage]:
        with self._changing:  # nobody is asked while it is closed
            if self._stopped:
                return []
            held = [*self._backend.shared_memory_usage(self._model.shared)]
            for instance in self._instances.values():
                held += instance.backend.memory_usage()
            return held

    def _ask(self) -> bool:
        return all(instance.backend.is_ready() for instance in self._instances.values())


def _build(instances: Collection[LocalInstance]) -> None:
    """Build them all at the same time. Raises what the first failing one raised."""
    for instance in instances:
        instance.start(alone=len(instances) == 1)
    errors = [instance.wait_built() for instance in instances]
    failed = next((error for error in errors if error is not None), None)
    if failed is not None:
        raise failed


def _nothing() -> None:
    """Who was not registered needs not be forgotten."""
