"""The runner for instances in this process.

Instances share threads if the backend allows that; otherwise each has its own thread.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any

from tritonpy.api.backend import Backend
from tritonpy.api.contexts import InstanceContext, ModelContext
from tritonpy.api.engine import MemoryUsage
from tritonpy.api.rate_limiter import RateLimiter
from tritonpy.runners.batch_callbacks import BatchCallbacks
from tritonpy.runners.dispatcher import Dispatcher
from tritonpy.runners.host_policies import HostPolicies
from tritonpy.runners.inline_policy import may_run_inline
from tritonpy.runners.local_instance import LocalInstance, ThreadInstance
from tritonpy.runners.memory_report import MemoryReport, pooled_memory, reports_memory
from tritonpy.runners.pooled_instance import PooledInstance, may_share_threads
from tritonpy.runners.rate_limit_lease import RateLimitLease
from tritonpy.runners.readiness import ReadinessCheck
from tritonpy.runners.runner import ModelExecution, NewInstance, Runner, RunnerFactory
from tritonpy.runners.thread_pool import ThreadPool
from tritonpy.runners.wakeups import Wakeups
from tritonpy.runners.warmup import MakeSamples
from tritonpy.statistics.memory import total_memory_usage
from tritonpy_types import InferRequest
from tritonpy_types.errors import Unavailable

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelInstanceGroup

_serial = itertools.count(1)


class LocalRunnerFactory(RunnerFactory):
    """Executes instances on threads of the server: the runner "thread"."""

    def runner(self, execution: ModelExecution) -> Runner:
        services = self.services
        return LocalRunner(
            execution.model,
            execution.backend,
            execution.dispatcher,
            services.limiter,
            execution.callbacks,
            services.graph.cancel_calls_for,
            services.threads,
            services.background,
            services.wakeups,
            execution.samples,
            services.policies,
        )


class LocalRunner(Runner):
    """Builds, feeds and ends the instances of a model version.

    Pooled instances execute on `threads`. `background` runs queries about memory.
    """

    def __init__(
        self,
        model: ModelContext,
        backend: type[Backend],
        dispatcher: Dispatcher,
        limiter: RateLimiter,
        callbacks: BatchCallbacks,
        cancel_calls: Callable[[InferRequest], None],
        threads: ThreadPool,
        background: ThreadPool,
        wakeups: Wakeups,
        samples: MakeSamples | None = None,
        policies: HostPolicies | None = None,
    ) -> None:
        self._model = model
        self._backend = backend
        self._dispatcher = dispatcher
        self._limiter = limiter
        self._callbacks = callbacks
        self._cancel_calls = cancel_calls
        self._samples = samples
        self._policies = policies or HostPolicies()
        self._threads = threads
        self._wakeups = wakeups
        self._inline = may_run_inline(model, backend)
        self._changing = threading.Lock()
        # Replaced as a whole: readers take no lock.
        self._instances: dict[int, LocalInstance[Any]] = {}
        self._draining: list[LocalInstance[Any]] = []
        self._stopped = False
        self._readiness = ReadinessCheck(self._check_readiness, model.log)
        self._memory = (
            MemoryReport(self._held, model.log, background) if reports_memory(backend) else None
        )

    def add(self, new_instances: Sequence[NewInstance]) -> None:
        instances: dict[int, LocalInstance[Any]] = {}
        with self._changing:
            if self._stopped:
                raise Unavailable("the model was unloaded")
            try:
                for context, group in new_instances:
                    instances[context.index] = self._instance(context, group)
                _build(instances.values())
            except BaseException:
                for instance in instances.values():
                    instance.stop()
                raise
            self._instances = {**self._instances, **instances}
        if any(context.max_open is not None for context, _ in new_instances):
            self._dispatcher.mark_bounded()

    def serve(self, indexes: Collection[int]) -> None:
        for index in indexes:
            self._instances[index].serve()

    def remove(self, indexes: Collection[int]) -> list[Future[None]]:
        with self._changing:
            removed = [self._instances[index] for index in indexes]
            self._instances = {
                index: each for index, each in self._instances.items() if index not in indexes
            }
            self._draining = [
                instance for instance in (*self._draining, *removed) if instance.alive()
            ]
            return [instance.drain() for instance in removed]

    def stop(self) -> None:
        with self._changing:
            self._stopped = True
            for instance in self._instances.values():
                instance.disable_inline()
            self._dispatcher.close()
            for instance in (*self._instances.values(), *self._draining):
                instance.stop()
            self._backend.unload(self._model.shared)
            self._model.shared = None

    def alive(self) -> bool:
        return all(instance.alive() for instance in self._instances.values())

    def is_ready(self) -> bool:
        asks = self._backend.is_ready is not Backend.is_ready
        return self.alive() and (not asks or self._readiness.check())

    def memory_usage(self) -> Sequence[MemoryUsage]:
        reported = [] if self._memory is None else self._memory.latest()
        pools = list(pooled_memory(self._model.memory))
        return total_memory_usage([*reported, *pools]) if pools else reported

    def measure_memory(self) -> None:
        if self._memory is not None:
            self._memory.refresh()

    def cancelled(self, request: InferRequest) -> None:
        self._cancel_calls(request)  # the instance itself checks `request.cancelled`

    def _instance(self, context: InstanceContext, group: ModelInstanceGroup) -> LocalInstance[Any]:
        # The limiter's name of the instance. Unlike `context.name`, it is unique even while a
        # version and its replacement are both loaded.
        lease_name = f"{context.name}#{next(_serial)}"
        limited = not context.passive and self._limiter.register(
            lease_name, context.device_id, group
        )
        policy = self._policies.of(context)
        on_end = _no_op if context.passive else partial(self._limiter.unregister, lease_name)
        common = (
            self._model,
            self._backend,
            context,
            self._dispatcher,
            self._callbacks,
            self._samples,
            on_end,
        )
        if policy is None and may_share_threads(self._model, self._backend, context):
            limiter = self._limiter if limited else None
            inline = self._inline and not limited
            self._threads.prepare()
            return PooledInstance(
                *common, self._threads, self._wakeups, inline, limiter, lease_name
            )
        lease = (
            RateLimitLease(self._limiter, lease_name, self._dispatcher.wake) if limited else None
        )
        return ThreadInstance(*common, lease, policy)

    def _held(self) -> list[MemoryUsage]:
        with self._changing:  # no instance may be closed during the query
            if self._stopped:
                return []
            held = [*self._backend.shared_memory_usage(self._model.shared)]
            for instance in self._instances.values():
                held += instance.backend.memory_usage()
            return held

    def _check_readiness(self) -> bool:
        return all(instance.backend.is_ready() for instance in self._instances.values())


def _build(instances: Collection[LocalInstance[Any]]) -> None:
    """Build all instances concurrently. Raises the error of the first failing one."""
    for instance in instances:
        instance.start(alone=len(instances) == 1)
    errors = [instance.wait_built() for instance in instances]
    failed = next((error for error in errors if error is not None), None)
    if failed is not None:
        raise failed


def _no_op() -> None:
    """Do nothing: the instance was not registered."""
