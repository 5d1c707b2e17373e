"""Runs the instances of a model as worker processes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from tritonpy.api.backend import Backend, InstanceContext, ModelContext
from tritonpy.api.rate_limiter import RateLimiter
from tritonpy.api.worker import Launcher
from tritonpy.errors import Internal
from tritonpy.runners.dispatcher import Dispatcher
from tritonpy.runners.guards import BatchGuards
from tritonpy.runners.isolation import loads_elsewhere
from tritonpy.runners.readiness import ReadinessCheck
from tritonpy.runners.rings import Rings
from tritonpy.runners.runner import Runner
from tritonpy.runners.workers.instance import Instance
from tritonpy.runners.workers.worker import Worker
from tritonpy.types import InferRequest

if TYPE_CHECKING:
    from tritonpy.runners.workers.neighbours import Neighbours
    from tritonpy_protos.model_config_pb2 import ModelInstanceGroup

_T = TypeVar("_T")


class WorkerRunner(Runner):
    """A process per instance. The workers' sockets live on the event loop; this object is called from threads that may wait."""

    def __init__(
        self,
        model: ModelContext,
        backend: type[Backend],
        launcher: Launcher,
        dispatcher: Dispatcher,
        rings: Rings,
        limiter: RateLimiter,
        guards: BatchGuards,
        neighbours: Neighbours,
        prefetch: bool,
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
        self._instances: list[Instance] = []
        self._permits: list[str] = []
        self._readiness = ReadinessCheck(self._ask, model.log)

    def start(self, instances: Sequence[tuple[InstanceContext, ModelInstanceGroup]]) -> None:
        for context, group in instances:
            instance = self._instance(context, alone=len(instances) == 1)
            self._limiter.register(instance.permit, context.device_id, group)
            self._permits.append(instance.permit)
            self._instances.append(instance)
        results = self._wait(self._each(Instance.start))
        failed = next((result for result in results if result is not None), None)
        if failed is not None:
            raise failed
        if any(context.max_open is not None for context, _ in instances):
            self._dispatcher.bound()
        for instance in self._instances:
            self._loop.call_soon_threadsafe(instance.feed)

    def stop(self) -> None:
        self._dispatcher.close()
        for result in self._wait(self._each(Instance.stop)):
            if result is not None:
                self._model.log.error("a worker failed to stop: %s", result)
        for permit in self._permits:
            self._limiter.unregister(permit)
        self._launcher.close()
        if not loads_elsewhere(self._model, self._backend):
            self._backend.unload(self._model.shared)
            self._model.shared = None

    def alive(self) -> bool:
        return all(instance.worker is not None for instance in self._instances)

    def is_ready(self) -> bool:
        workers = [instance.worker for instance in self._instances]
        asks = any(worker is not None and worker.asks_ready for worker in workers)
        return self.alive() and (not asks or self._readiness.answer())

    def cancelled(self, request: InferRequest) -> None:
        batch = request.batch  # read once: its answer takes it away, on the loop's thread
        for instance in self._instances:
            if batch is not None and batch.instance is instance.slot:
                self._loop.call_soon_threadsafe(instance.cancel, request)

    def _instance(self, context: InstanceContext, alone: bool) -> Instance:
        return Instance(
            self._model,
            context,
            self._loop,
            self._rings,
            self._dispatcher,
            self._guards,
            self._limiter,
            self._prefetch,
            alone,
            self._launcher.execution_limit_s,
            partial(Worker, self._model, context, self._launcher, self._neighbours, self._loop),
            lambda: all(instance.broken is not None for instance in self._instances),
        )

    def _ask(self) -> bool:
        async def ask() -> bool:
            workers = [instance.worker for instance in self._instances if instance.worker is not None]
            return all(await asyncio.gather(*(worker.is_ready() for worker in workers)))

        return self._wait(ask())

    async def _each(self, act: Callable[[Instance], Coroutine[Any, Any, None]]) -> list[BaseException | None]:
        return list(await asyncio.gather(*(act(instance) for instance in self._instances), return_exceptions=True))

    def _wait(self, coroutine: Coroutine[Any, Any, _T]) -> _T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()
