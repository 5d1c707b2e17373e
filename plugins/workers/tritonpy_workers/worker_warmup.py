"""Warm-up of a worker before it serves."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from tritonpy import Batch, InferResponse, ModelContext, TritonError
from tritonpy.execution import Slot, WarmupExecution, WarmupSample, warmup_executions
from tritonpy_workers.worker import Worker


class WorkerWarmup:
    """Executes the warm-up samples in order and handles the death of the worker meanwhile.

    All methods run on the event loop's thread.
    """

    def __init__(self, model: ModelContext, slot: Slot, worker: Worker, limit_s: float) -> None:
        self._model = model
        self._slot = slot
        self._worker = worker
        self._limit_s = limit_s
        self._changed = asyncio.Event()
        self._settled = False
        self._error: TritonError | None = None

    async def run(self, samples: Sequence[WarmupSample]) -> None:
        """Run the samples.

        Raises `InvalidArgument` if a sample failed, or the error that the worker died of.
        """
        for execution in warmup_executions(self._model, self._slot, samples, self._settle):
            while (batch := execution.batch()) is not None:
                await self._execute(execution, batch)
            execution.raise_errors()
            if self._error is not None:
                raise self._error

    def execution_done(self) -> None:
        """Record that the worker has finished an execution."""
        self._changed.set()

    def worker_died(self, error: TritonError) -> None:
        """Record that the worker has died."""
        self._error = error
        for request in self._worker.executions.abandon():
            request.respond(InferResponse.failed(request, error))
        self._changed.set()

    def _settle(self) -> None:
        self._settled = True
        self._changed.set()

    async def _execute(self, execution: WarmupExecution, batch: Batch) -> None:
        worker, self._settled = self._worker, False
        limit = None
        if self._limit_s:
            reason = f"an execution took longer than the limit of {self._limit_s:g} s"
            limit = asyncio.get_running_loop().call_later(self._limit_s, worker.kill, reason)
        try:
            worker.executions.send([batch])
        except Exception as error:
            execution.fail(batch, error)
        try:
            while not self._settled or worker.executions.running:
                self._changed.clear()
                await self._changed.wait()
        finally:
            if limit is not None:
                limit.cancel()
