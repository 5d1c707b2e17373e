"""The warm-up of a worker that is up and serves nobody yet."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from tritonpy.api.backend import ModelContext
from tritonpy.errors import TritonError
from tritonpy.runners.slot import Slot
from tritonpy.runners.warmup import Trial, WarmupSample, trials
from tritonpy.runners.workers.worker import Worker
from tritonpy.types import Batch, InferResponse


class Warming:
    """Runs the samples, one execution after the other, and hears meanwhile what becomes of the worker; all on the loop's thread."""

    def __init__(self, model: ModelContext, slot: Slot, worker: Worker, limit_s: float) -> None:
        self._model = model
        self._slot = slot
        self._worker = worker
        self._limit_s = limit_s
        self._news = asyncio.Event()
        self._settled = False
        self._death: TritonError | None = None

    async def run(self, samples: Sequence[WarmupSample]) -> None:
        """Return when the worker may serve. Raises InvalidArgument with what went wrong, or what the worker died of."""
        for trial in trials(self._model, self._slot, samples, self._settle):
            while (batch := trial.batch()) is not None:
                await self._execute(trial, batch)
            trial.conclude()
            if self._death is not None:
                raise self._death

    def over(self) -> None:
        """Take note that the worker executed something to its end."""
        self._news.set()

    def died(self, error: TritonError) -> None:
        """Take note that the worker is gone."""
        self._death = error
        for request in self._worker.executions.give_up():
            request.respond(InferResponse.failed(request, error))
        self._news.set()

    def _settle(self) -> None:
        self._settled = True
        self._news.set()

    async def _execute(self, trial: Trial, batch: Batch) -> None:
        worker, self._settled = self._worker, False
        limit = None
        if self._limit_s:
            reason = f"an execution took longer than the limit of {self._limit_s:g} s"
            limit = asyncio.get_running_loop().call_later(self._limit_s, worker.kill, reason)
        try:
            worker.executions.send([batch])
        except Exception as error:
            trial.fail(batch, error)
        try:
            while not self._settled or worker.executions.running:
                self._news.clear()
                await self._news.wait()
        finally:
            if limit is not None:
                limit.cancel()
