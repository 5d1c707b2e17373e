"""Runs the instances of a model as worker processes."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Callable, Collection, Coroutine, Iterator, Sequence
from concurrent.futures import CancelledError, Future, wait
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from tritonpy.api.backend import Backend, InstanceContext, ModelContext
from tritonpy.api.engine import MemoryUsage
from tritonpy.api.rate_limiter import RateLimiter
from tritonpy.api.worker import Launcher
from tritonpy.errors import Internal, Unavailable
from tritonpy.runners.dispatcher import Dispatcher
from tritonpy.runners.guards import BatchGuards
from tritonpy.runners.host_policies import HostPolicies
from tritonpy.runners.isolation import loads_elsewhere
from tritonpy.runners.memory_report import MemoryReport
from tritonpy.runners.readiness import ReadinessCheck
from tritonpy.runners.rings import Rings
from tritonpy.runners.runner import Newcomer, Runner
from tritonpy.runners.thread_pool import ThreadPool
from tritonpy.runners.warmup import MakeSamples
from tritonpy.runners.workers.crowd import Crowd, room_for_workers
from tritonpy.runners.workers.instance import Instance
from tritonpy.runners.workers.permit import Permit
from tritonpy.runners.workers.process_memory import process_memory
from tritonpy.runners.workers.worker import Worker
from tritonpy.types import InferRequest

if TYPE_CHECKING:
    from tritonpy.runners.workers.neighbours import Neighbours
    from tritonpy_protos.model_config_pb2 import ModelInstanceGroup

_T = TypeVar("_T")
_SUSPENSION_S = 10.0  # after the death of a worker
_serial = itertools.count(1)


class WorkerRunner(Runner):
    """A process per instance. The workers' sockets live on the event loop; this object is called from threads that may wait."""

    def __init__(
        self,
        model: ModelContext,
        backend: type[Backend],
        launcher: Launcher,
        dispatcher: Dispatcher,
        rings: Rings,
        background: ThreadPool,
        limiter: RateLimiter,
        guards: BatchGuards,
        neighbours: Neighbours,
        prefetch: bool,
        samples: MakeSamples | None = None,
        policies: HostPolicies | None = None,
    ) -> None:
        if rings.loop is None:
            raise Internal(
                f"model '{model.name}' runs in worker processes, which need the event loop of a started server"
            )
        self._loop = rings.loop
        self._model = model
        self._backend = backend
        self._launcher = launcher
        self._dispatcher = dispatcher
        self._rings = rings
        self._limiter = limiter
        self._guards = guards
        self._neighbours = neighbours
        self._prefetch = prefetch
        # A batch that is fetched ahead cannot grow: nothing is gained by holding it back.
        self._crowd = None if prefetch else Crowd(self._loop, room_for_workers())
        self._samples = samples
        self._policies = policies or HostPolicies()
        self._changing = threading.Lock()
        self._instances: dict[int, Instance] = {}  # replaced as a whole: readers take no lock
        self._leaving: dict[Future[None], Instance] = {}
        self._permits: dict[Instance, str] = {}
        self._stopped = False
        self._resuming: asyncio.TimerHandle | None = None
        self._readiness = ReadinessCheck(self._ask, model.log)
        self._memory = MemoryReport(self._held, model.log, background)

    def add(self, newcomers: Sequence[Newcomer]) -> None:
        with self._changing:
            if self._stopped:
                raise Unavailable("the model was unloaded")
            alone = len(self._instances) + len(newcomers) == 1
            instances: dict[int, Instance] = {}
            try:
                for context, group in newcomers:
                    instances[context.index] = self._instance(context, group, alone)
                self._wait_for_start(instances.values())
            except BaseException:
                for instance in instances.values():
                    self._forget(instance)
                raise
            self._instances = {**self._instances, **instances}
        if any(context.max_open is not None for context, _ in newcomers):
            self._dispatcher.bound()

    def serve(self, indexes: Collection[int]) -> None:
        for index in indexes:
            if not self._instances[index].slot.context.passive:
                self._loop.call_soon_threadsafe(self._instances[index].serve)
        self._note_who_is_alone()

    def remove(self, indexes: Collection[int]) -> list[Future[None]]:
        with self._changing:
            removed = [self._instances[index] for index in indexes]
            self._instances = {index: each for index, each in self._instances.items() if index not in indexes}
            leaving = {asyncio.run_coroutine_threadsafe(self._leave(each), self._loop): each for each in removed}
            self._leaving = {**{gone: each for gone, each in self._leaving.items() if not gone.done()}, **leaving}
        self._note_who_is_alone()
        return list(leaving)

    def stop(self) -> None:
        with self._changing:
            self._stopped = True
            self._dispatcher.close()
            instances = (*self._instances.values(), *self._leaving.values())
            for result in self._wait(_each(instances, Instance.stop)):
                if result is not None:
                    self._model.log.error("a worker failed to stop: %s", result)
            wait(self._leaving)  # they are stopped, and have to take note of it before the loop ends
            for instance in instances:
                self._forget(instance)
            self._launcher.close()
            if not loads_elsewhere(self._model, self._backend):
                self._backend.unload(self._model.shared)
                self._model.shared = None

    def alive(self) -> bool:
        return all(instance.worker is not None for instance in self._instances.values())

    def is_ready(self) -> bool:
        workers = [instance.worker for instance in self._instances.values()]
        asks = any(worker is not None and worker.asks_ready for worker in workers)
        return self.alive() and (not asks or self._readiness.answer())

    def memory_usage(self) -> Sequence[MemoryUsage]:
        return self._memory.latest()

    def measure_memory(self) -> None:
        self._memory.renew()

    def cancelled(self, request: InferRequest) -> None:
        batch = request.batch  # read once: its answer takes it away, on the loop's thread
        for instance in (*self._instances.values(), *self._leaving.values()):
            if batch is not None and batch.instance is instance.slot:
                self._loop.call_soon_threadsafe(instance.cancel, request)

    def _instance(self, context: InstanceContext, group: ModelInstanceGroup, alone: bool) -> Instance:
        # What the limiter knows the instance by: unlike its name unique, also while a version and its replacement are both loaded.
        permit = f"{context.name}#{next(_serial)}"
        limited = not context.passive and self._limiter.register(permit, context.device_id, group)
        instance = Instance(
            self._model,
            context,
            self._loop,
            self._rings,
            self._dispatcher,
            self._guards,
            partial(Permit, self._limiter, permit, self._loop) if limited else None,
            self._prefetch,
            alone,
            None if limited else self._crowd,  # who may execute beside whom is up to the limiter
            self._launcher.execution_limit_s,
            partial(
                Worker, self._model, context, self._launcher, self._neighbours, self._loop, self._policies.of(context)
            ),
            self._hopeless,
            self._spare_beside,
            self._instance_died,
            None if context.passive else self._samples,
        )
        if not context.passive:
            self._permits[instance] = permit
        return instance

    def _forget(self, instance: Instance) -> None:
        permit = self._permits.pop(instance, None)
        if permit is not None:
            self._limiter.unregister(permit)

    def _hopeless(self) -> bool:
        serving = [each for each in self._instances.values() if not each.slot.context.passive]
        return all(instance.broken is not None for instance in serving)

    def _instance_died(self) -> None:
        """Hand out single executions for a while; where no instance is left that serves, cut pauses short on demand."""
        instances = self._instances.values()
        self._suspend_pipelining(True)
        if self._resuming is not None:
            self._resuming.cancel()
        self._resuming = self._loop.call_later(_SUSPENSION_S, self._suspend_pipelining, False)
        if all(instance.worker is None for instance in instances):
            for instance in instances:
                instance.end_pause_on_demand()

    def _suspend_pipelining(self, suspended: bool) -> None:
        for instance in self._instances.values():
            instance.pipelining.suspended = suspended

    def _spare_beside(self, asking: Instance) -> int:
        return sum([each is not asking and each.is_spare() for each in self._instances.values()])

    def _note_who_is_alone(self) -> None:
        instances = self._instances.values()
        for instance in instances:
            instance.pipelining.alone = len(instances) == 1

    def _wait_for_start(self, instances: Collection[Instance]) -> None:
        """Start the instances, and kill them when the load is canceled. Raises Unavailable then."""

        async def start() -> None:
            task = asyncio.current_task()
            assert task is not None, "a coroutine runs in a task: this is a bug"  # noqa: S101
            with self._model.cancellation.calling(partial(self._loop.call_soon_threadsafe, task.cancel)):
                await self._start(instances)

        try:
            self._wait(start())
        except CancelledError:
            raise Unavailable(self._model.cancellation.reason) from None

    async def _start(self, instances: Collection[Instance]) -> None:
        """Start all of them at the same time. Raises what the first failing one raised, when the others are ended again."""
        errors = await _each(instances, Instance.start)
        failed = next((error for error in errors if error is not None), None)
        if failed is not None:
            await _each(instances, Instance.stop)
            raise failed

    async def _leave(self, instance: Instance) -> None:
        try:
            await instance.leave()
        except Exception as error:
            self._model.log.error("a worker failed to stop: %s", error)
        finally:
            self._forget(instance)

    def _ask(self) -> bool:
        async def ask() -> bool:
            workers = [instance.worker for instance in self._instances.values() if instance.worker is not None]
            return all(await asyncio.gather(*(worker.is_ready() for worker in workers)))

        return self._wait(ask())

    def _held(self) -> Iterator[MemoryUsage]:
        for instance in self._instances.values():
            worker = instance.worker
            if worker is not None and not self._stopped:
                told = self._wait(worker.memory_usage()) if worker.tells_memory else ()
                yield from process_memory(worker.pid, told)

    def _wait(self, coroutine: Coroutine[Any, Any, _T]) -> _T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()


async def _each(
    instances: Collection[Instance], act: Callable[[Instance], Coroutine[Any, Any, None]]
) -> list[BaseException | None]:
    return list(await asyncio.gather(*(act(instance) for instance in instances), return_exceptions=True))
