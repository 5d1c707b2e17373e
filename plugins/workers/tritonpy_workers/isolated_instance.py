"""A backend's instance in a worker process, without a server."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from tritonpy import (
    Backend,
    Batch,
    InferResponse,
    InstanceContext,
    MemoryUsage,
    ModelContext,
    TritonError,
)
from tritonpy.execution import CallGraph, Slot
from tritonpy_workers.backend_process import SpawnLauncher
from tritonpy_workers.executions import WorkerExecution
from tritonpy_workers.worker import Worker
from tritonpy_workers.worker_registry import WorkerRegistry

_T = TypeVar("_T")


class IsolatedInstance(Backend):
    """A proxy for an instance of `backend` in a worker process.

    Each call crosses to the process and back, as in a server. The constructor starts the process
    and raises its error when it cannot run the model. Requests cannot join a running execution.
    """

    def __init__(
        self, backend: type[Backend], model: ModelContext, instance: InstanceContext
    ) -> None:
        super().__init__(model, instance)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name=f"{instance.name} worker", daemon=True
        )
        self._thread.start()
        self._slot = Slot(instance)
        self._running: dict[int, asyncio.Future[None]] = {}
        self._launcher = backend.worker_launcher(model) or SpawnLauncher(model, backend)
        try:
            self._worker: Worker | None = self._do(self._start())
        except BaseException:
            self._end_loop()
            raise

    def execute(self, batch: Batch) -> None:
        """Send the batch and return when the process has executed it.

        Responses may arrive later.
        """
        batch.instance = self._slot
        self._do(self._execute(batch))

    def is_ready(self) -> bool:
        return self._worker is not None and self._do(self._worker.is_ready())

    def memory_usage(self) -> Sequence[MemoryUsage]:
        """Return the memory of the instance and of its shared data, as the process reports it."""
        worker = self._worker
        return (
            self._do(worker.memory_usage()) if worker is not None and worker.reports_memory else ()
        )

    def close(self) -> None:
        """End the process. A second call does nothing."""
        if self._worker is not None:
            self._do(self._worker.stop())
            self._worker = None
            self._end_loop()

    async def _start(self) -> Worker:
        model = self.model
        registry = WorkerRegistry(model.engine.model_config, CallGraph(model.engine.model_config))
        worker = Worker(
            model,
            self.instance,
            self._launcher,
            registry,
            self._loop,
            None,
            self._done,
            self._ended,
            _nothing_more,
        )
        await worker.start()
        return worker

    async def _execute(self, batch: Batch) -> None:
        assert self._worker is not None, "the instance is closed"
        (number,) = self._worker.executions.send([batch])
        self._running[number] = done = self._loop.create_future()
        await done

    def _done(self, executions: Sequence[WorkerExecution]) -> None:
        for execution in executions:
            self._running.pop(execution.id).set_result(None)

    def _ended(self, error: TritonError) -> None:
        assert self._worker is not None, "a worker that never started ended"
        for request in self._worker.executions.abandon():
            request.respond(InferResponse.failed(request, error))
        for done in self._running.values():
            done.set_result(None)
        self._running.clear()

    def _do(self, coroutine: Coroutine[Any, Any, _T]) -> _T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def _end_loop(self) -> None:
        self._do(self._loop.shutdown_default_executor())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._launcher.close()


async def _nothing_more(_count: int) -> int | None:
    return None
