"""The runner for instances in worker processes."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Callable, Collection, Coroutine, Iterator, Sequence
from concurrent.futures import CancelledError, Future, wait
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from tritonpy import (
    Backend,
    InferRequest,
    InstanceContext,
    Internal,
    MemoryUsage,
    ModelContext,
    Unavailable,
)
from tritonpy.execution import (
    BatchCallbacks,
    Dispatcher,
    HostPolicies,
    Launcher,
    MakeSamples,
    MemoryReport,
    ModelExecution,
    NewInstance,
    ReadinessCheck,
    Runner,
    RunnerFactory,
    RunnerServices,
    ThreadPool,
    Wakeups,
    loads_in_worker,
)
from tritonpy.scheduling import RateLimiter
from tritonpy_workers.backend_process import SpawnLauncher
from tritonpy_workers.concurrency_limiter import ConcurrencyLimiter, worker_capacity
from tritonpy_workers.instance import WorkerInstance
from tritonpy_workers.process_memory import process_memory
from tritonpy_workers.rate_limit_lease import WorkerRateLimitLease
from tritonpy_workers.worker import Worker
from tritonpy_workers.worker_registry import WorkerRegistry

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelInstanceGroup

_T = TypeVar("_T")
_SUSPENSION_S = 10.0  # after the death of a worker
_serial = itertools.count(1)


class WorkerRunnerFactory(RunnerFactory):
    """Executes each instance in a process of its own: the runner "process"."""

    def __init__(self, services: RunnerServices) -> None:
        super().__init__(services)
        self._registry = WorkerRegistry(services.find_config, services.graph)

    def runner(self, execution: ModelExecution) -> Runner:
        services, model, backend = self.services, execution.model, execution.backend
        return WorkerRunner(
            model,
            backend,
            backend.worker_launcher(model) or SpawnLauncher(model, backend),
            execution.dispatcher,
            services.wakeups,
            services.background,
            services.limiter,
            execution.callbacks,
            self._registry,
            execution.prefetch,
            execution.samples,
            services.policies,
        )

    @classmethod
    def single_instance(
        cls, backend: type[Backend], model: ModelContext, instance: InstanceContext
    ) -> Backend:
        from tritonpy_workers.isolated_instance import IsolatedInstance

        return IsolatedInstance(backend, model, instance)


class WorkerRunner(Runner):
    """Runs one process per instance.

    The sockets of the workers are on the event loop. The methods are called from threads that may
    block.
    """

    def __init__(
        self,
        model: ModelContext,
        backend: type[Backend],
        launcher: Launcher,
        dispatcher: Dispatcher,
        wakeups: Wakeups,
        background: ThreadPool,
        limiter: RateLimiter,
        callbacks: BatchCallbacks,
        registry: WorkerRegistry,
        prefetch: bool,
        samples: MakeSamples | None = None,
        policies: HostPolicies | None = None,
    ) -> None:
        if wakeups.loop is None:
            raise Internal(
                f"model '{model.name}' runs in worker processes, which need the event loop of a "
                "started server"
            )
        self._loop = wakeups.loop
        self._model = model
        self._backend = backend
        self._launcher = launcher
        self._dispatcher = dispatcher
        self._wakeups = wakeups
        self._limiter = limiter
        self._callbacks = callbacks
        self._registry = registry
        self._prefetch = prefetch
        # A prefetched batch cannot grow, so holding it back would gain nothing.
        self._concurrency = None if prefetch else ConcurrencyLimiter(self._loop, worker_capacity())
        self._samples = samples
        self._policies = policies or HostPolicies()
        self._changing = threading.Lock()
        self._instances: dict[int, WorkerInstance] = {}  # replaced as a whole: readers take no lock
        self._draining: dict[Future[None], WorkerInstance] = {}
        self._lease_names: dict[WorkerInstance, str] = {}
        self._stopped = False
        self._resuming: asyncio.TimerHandle | None = None
        self._readiness = ReadinessCheck(self._check_readiness, model.log)
        self._memory = MemoryReport(self._held, model.log, background)

    def add(self, new_instances: Sequence[NewInstance]) -> None:
        with self._changing:
            if self._stopped:
                raise Unavailable("the model was unloaded")
            is_only_instance = len(self._instances) + len(new_instances) == 1
            instances: dict[int, WorkerInstance] = {}
            try:
                for context, group in new_instances:
                    instances[context.index] = self._instance(context, group, is_only_instance)
                self._wait_for_start(instances.values())
            except BaseException:
                for instance in instances.values():
                    self._forget(instance)
                raise
            self._instances = {**self._instances, **instances}
        if any(context.max_open is not None for context, _ in new_instances):
            self._dispatcher.mark_bounded()

    def serve(self, indexes: Collection[int]) -> None:
        for index in indexes:
            if not self._instances[index].slot.context.passive:
                self._loop.call_soon_threadsafe(self._instances[index].serve)
        self._update_only_instance()

    def remove(self, indexes: Collection[int]) -> list[Future[None]]:
        with self._changing:
            removed = [self._instances[index] for index in indexes]
            self._instances = {
                index: each for index, each in self._instances.items() if index not in indexes
            }
            draining = {
                asyncio.run_coroutine_threadsafe(self._drain(each), self._loop): each
                for each in removed
            }
            self._draining = {
                **{gone: each for gone, each in self._draining.items() if not gone.done()},
                **draining,
            }
        self._update_only_instance()
        return list(draining)

    def stop(self) -> None:
        with self._changing:
            self._stopped = True
            self._dispatcher.close()
            instances = (*self._instances.values(), *self._draining.values())
            for result in self._wait(_each(instances, WorkerInstance.stop)):
                if result is not None:
                    self._model.log.error("a worker failed to stop: %s", result)
            wait(self._draining)  # they have stopped, but must handle that before the loop ends
            for instance in instances:
                self._forget(instance)
            self._launcher.close()
            if not loads_in_worker(self._model, self._backend):
                self._backend.unload(self._model.shared)
                self._model.shared = None

    def alive(self) -> bool:
        return all(instance.worker is not None for instance in self._instances.values())

    def is_ready(self) -> bool:
        workers = [instance.worker for instance in self._instances.values()]
        asks = any(worker is not None and worker.has_ready_check for worker in workers)
        return self.alive() and (not asks or self._readiness.check())

    def memory_usage(self) -> Sequence[MemoryUsage]:
        return self._memory.latest()

    def measure_memory(self) -> None:
        self._memory.refresh()

    def cancelled(self, request: InferRequest) -> None:
        batch = request.batch  # read once: its response resets it on the event loop's thread
        for instance in (*self._instances.values(), *self._draining.values()):
            if batch is not None and batch.instance is instance.slot:
                self._loop.call_soon_threadsafe(instance.cancel, request)

    def _instance(
        self, context: InstanceContext, group: ModelInstanceGroup, is_only_instance: bool
    ) -> WorkerInstance:
        # The limiter's name of the instance. Unlike `context.name`, it is unique even while a
        # version and its replacement are both loaded.
        lease_name = f"{context.name}#{next(_serial)}"
        limited = not context.passive and self._limiter.register(
            lease_name, context.device_id, group
        )
        instance = WorkerInstance(
            self._model,
            context,
            self._loop,
            self._wakeups,
            self._dispatcher,
            self._callbacks,
            partial(WorkerRateLimitLease, self._limiter, lease_name, self._loop)
            if limited
            else None,
            self._prefetch,
            is_only_instance,
            # The rate limiter decides which instances may execute concurrently.
            None if limited else self._concurrency,
            self._launcher.execution_limit_s,
            partial(
                Worker,
                self._model,
                context,
                self._launcher,
                self._registry,
                self._loop,
                self._policies.of(context),
            ),
            self._all_broken,
            self._count_idle_others,
            self._instance_died,
            None if context.passive else self._samples,
        )
        if not context.passive:
            self._lease_names[instance] = lease_name
        return instance

    def _forget(self, instance: WorkerInstance) -> None:
        lease_name = self._lease_names.pop(instance, None)
        if lease_name is not None:
            self._limiter.unregister(lease_name)

    def _all_broken(self) -> bool:
        serving = [each for each in self._instances.values() if not each.slot.context.passive]
        return all(instance.broken is not None for instance in serving)

    def _instance_died(self) -> None:
        """Suspend prefetching for a while; restart on demand if no instance is left."""
        instances = self._instances.values()
        self._suspend_prefetch(True)
        if self._resuming is not None:
            self._resuming.cancel()
        self._resuming = self._loop.call_later(_SUSPENSION_S, self._suspend_prefetch, False)
        if all(instance.worker is None for instance in instances):
            for instance in instances:
                instance.restart_on_demand()

    def _suspend_prefetch(self, suspended: bool) -> None:
        for instance in self._instances.values():
            instance.prefetch_depth.suspended = suspended

    def _count_idle_others(self, caller: WorkerInstance) -> int:
        return sum([each is not caller and each.is_idle() for each in self._instances.values()])

    def _update_only_instance(self) -> None:
        instances = self._instances.values()
        for instance in instances:
            instance.prefetch_depth.is_only_instance = len(instances) == 1

    def _wait_for_start(self, instances: Collection[WorkerInstance]) -> None:
        """Start the instances, or kill them and raise `Unavailable` if the load is cancelled."""

        async def start() -> None:
            task = asyncio.current_task()
            assert task is not None, "a coroutine runs in a task: this is a bug"  # noqa: S101
            with self._model.cancellation.calling(
                partial(self._loop.call_soon_threadsafe, task.cancel)
            ):
                await self._start(instances)

        try:
            self._wait(start())
        except CancelledError:
            raise Unavailable(self._model.cancellation.reason) from None

    async def _start(self, instances: Collection[WorkerInstance]) -> None:
        """Start all instances concurrently.

        If one fails, stops the others and raises the error of the first failing one.
        """
        errors = await _each(instances, WorkerInstance.start)
        failed = next((error for error in errors if error is not None), None)
        if failed is not None:
            await _each(instances, WorkerInstance.stop)
            raise failed

    async def _drain(self, instance: WorkerInstance) -> None:
        try:
            await instance.drain()
        except Exception as error:
            self._model.log.error("a worker failed to stop: %s", error)
        finally:
            self._forget(instance)

    def _check_readiness(self) -> bool:
        async def ask() -> bool:
            workers = [
                instance.worker
                for instance in self._instances.values()
                if instance.worker is not None
            ]
            return all(await asyncio.gather(*(worker.is_ready() for worker in workers)))

        return self._wait(ask())

    def _held(self) -> Iterator[MemoryUsage]:
        for instance in self._instances.values():
            worker = instance.worker
            if worker is not None and not self._stopped:
                reported = self._wait(worker.memory_usage()) if worker.reports_memory else ()
                yield from process_memory(worker.pid, reported, self._model.gpus)

    def _wait(self, coroutine: Coroutine[Any, Any, _T]) -> _T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()


async def _each(
    instances: Collection[WorkerInstance],
    act: Callable[[WorkerInstance], Coroutine[Any, Any, None]],
) -> list[BaseException | None]:
    return list(
        await asyncio.gather(*(act(instance) for instance in instances), return_exceptions=True)
    )
