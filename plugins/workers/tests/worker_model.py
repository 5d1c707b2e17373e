"""A model whose instances are scripted workers; everything else is real."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from plugins.workers.tests.fake_worker import eventually, registry_of
from plugins.workers.tests.scripted_worker import ScriptedLauncher, ScriptedWorker
from tritonpy.api.backend import Backend
from tritonpy.api.batch_policy import BatchPolicy
from tritonpy.api.contexts import InstanceContext, ModelContext
from tritonpy.api.rate_limiter import NoRateLimiter, RateLimiter
from tritonpy.api.scheduler import UNBOUNDED, Scheduler, SchedulerContext
from tritonpy.model.loaded_model import LoadedModel
from tritonpy.model.request_check import RequestCheck
from tritonpy.runners.direct_scheduler import DirectScheduler
from tritonpy.runners.thread_pool import ThreadPool
from tritonpy.runners.timer import Timer
from tritonpy.runners.wakeups import Wakeups
from tritonpy.runners.warmup import MakeSamples
from tritonpy_config.options import NoOptions
from tritonpy_engine_rpc.processes import open_parent_pipe
from tritonpy_testing.parse import model_config
from tritonpy_testing.recording_sink import RecordingSink
from tritonpy_testing.toy_engine import ToyEngine
from tritonpy_types import Batch, InferRequest, InferResponse, Tensor
from tritonpy_workers.runner import WorkerRunner

# Executions that are prefetched, and that are sent one at a time.
SHORT_NS, LONG_NS = 1_000, 10_000_000
NEEDS_ONE = 'rate_limiter { resources { name: "R" count: 1 } }'
CONFIG = """
name: "m"
max_batch_size: 8
input { name: "IN" data_type: %s dims: -1 }
output { name: "OUT" data_type: %s dims: -1 }
instance_group { count: %d kind: KIND_CPU %s }
model_transaction_policy { decoupled: %s }
"""


class Batching(DirectScheduler):
    """Returns all waiting requests as one batch, which may grow while it waits."""

    prefetch = False

    def take(self, instance: int, now_ns: int, limit: int = UNBOUNDED) -> Batch | None:
        queue = self._queue
        return Batch([queue.popleft() for _ in range(min(len(queue), limit))]) if queue else None


class WorkerModel:
    """A loaded model with its workers and clients."""

    def __init__(
        self,
        scheduler: type[Scheduler] = DirectScheduler,
        instances: int = 1,
        limiter: RateLimiter | None = None,
        limit_s: float = 0.0,
        datatype: str = "TYPE_INT32",
        group: str = "",
        decoupled: bool = False,
        samples: MakeSamples | None = None,
    ) -> None:
        loop = asyncio.get_running_loop()
        self.count = instances
        config = model_config(
            CONFIG % (datatype, datatype, instances, group, str(decoupled).lower())
        )
        folder = Path("nowhere")
        self.engine = ToyEngine()
        log = logging.LoggerAdapter(
            logging.getLogger("tritonpy.backend"), {"model": "m", "version": 1}
        )
        self.context = ModelContext(
            "m", 1, config, folder, folder, {}, {}, NoOptions(), self.engine, log
        )
        self.timer, self.wakeups, self.limiter = Timer(), Wakeups(), limiter or NoRateLimiter()
        self.background = ThreadPool("background", 1)
        self.wakeups.attach(loop)
        self.model = LoadedModel(
            self.context, RequestCheck(config, "m"), {}, self.timer, (), self.wakeups
        )
        self.scheduler = scheduler(
            SchedulerContext("m", 1, config, self.engine, _no_policy, self.model.dispatcher.wake)
        )
        self.model.attach(self.scheduler)
        self.launcher = ScriptedLauncher(limit_s)
        self.unloaded: list[object] = []
        self.runner = WorkerRunner(
            self.context,
            type("Told", (Backend,), {"unload": self.unloaded.append}),
            self.launcher,
            self.model.dispatcher,
            self.wakeups,
            self.background,
            self.limiter,
            self.model.callbacks,
            registry_of(self.engine),
            self.scheduler.prefetch,
            samples,
        )
        self.model.runner = self.runner
        self.recorder = RecordingSink()
        self.requested: list[InferRequest] = []
        self.workers: list[ScriptedWorker] = []
        self._unloading: asyncio.Future[None] | None = None

    async def start(self, **fields: Any) -> list[ScriptedWorker]:
        """Load the model and return its workers in the order of the instances."""
        starting = asyncio.ensure_future(self.load())
        workers = [await self.launcher.next() for _ in range(self.count)]
        self.workers = sorted(workers, key=lambda worker: worker.name)
        for worker in self.workers:
            await worker.started(**fields)
        await starting
        return self.workers

    async def load(self) -> None:
        """Start the runner as a loading thread does. Raises its error."""
        group = self.context.config.instance_group[0]
        contexts = [InstanceContext(f"m_0_{index}", "CPU", 0, index) for index in range(self.count)]
        await asyncio.to_thread(self.runner.add, [(context, group) for context in contexts])
        self.runner.serve(range(self.count))

    def ask(self, *values: int, **fields: Any) -> InferRequest:
        """Send a request with INT32 values as input IN, one row."""
        return self.send(np.array([values], np.int32), **fields)

    def send(self, array: Any, **fields: Any) -> InferRequest:
        request = InferRequest(
            "m", {"IN": Tensor.from_numpy("IN", array)}, self.recorder.sink, **fields
        )
        self.requested.append(request)
        self.model.infer(request)
        return request

    async def answers(self, *requests: InferRequest) -> list[InferResponse]:
        """Wait for the final response of each request; return the last responses."""
        await eventually(lambda: all(request.finished for request in requests))
        return [answers[-1] for answers in self.recorder.wait(*requests)]

    async def values(self, *requests: InferRequest) -> list[list[int]]:
        """Wait and return the values of each response. Raises a response's error."""
        found = []
        for answer in await self.answers(*requests):
            if answer.error is not None:
                raise answer.error
            found.append(answer.outputs[0].numpy().ravel().tolist())
        return found

    async def errors(self, *requests: InferRequest) -> list[str]:
        """Wait and return the error of each request."""
        return [
            answer.error.message if answer.error else "" for answer in await self.answers(*requests)
        ]

    def unload(self) -> asyncio.Future[None]:
        """Begin to unload the model, once; return a future of the end."""
        if self._unloading is None:
            self._unloading = asyncio.ensure_future(asyncio.to_thread(self.model.close))
        return self._unloading

    async def close(self) -> None:
        """Unload the model; its workers stop when requested."""
        unloading = self.unload()
        for worker in [each for each in self.launcher.workers if not each.over]:
            await worker.stop()
        await unloading

    async def end(self) -> None:
        """Clean up, even after a failed test."""
        unloading = self.unload()
        while not unloading.done():
            for worker in self.launcher.workers:
                worker.kill()
            self.model.fail_waiting()
            await asyncio.sleep(0)
        self.timer.stop()
        self.background.close()
        self.engine.__exit__()


async def next_iteration() -> None:
    """Run all pending callbacks of the loop."""
    for _ in range(5):
        await asyncio.sleep(0)


@asynccontextmanager
async def check_leaks() -> AsyncIterator[None]:
    """Check that the body leaves no task, open file or unreported error of the loop."""
    complaints: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, fields: complaints.append(fields))
    os.close(open_parent_pipe())  # one pipe per process, created for the first worker
    before = open_files()
    yield
    await eventually(lambda: asyncio.all_tasks() == {asyncio.current_task()})
    gc.collect()
    assert complaints == []
    assert open_files() == before


@asynccontextmanager
async def worker_model(**how: Any) -> AsyncIterator[WorkerModel]:
    """Yield a model that is not loaded yet; unload it at the end and check it.

    Every request must have one final response, and nothing may leak.
    """
    async with check_leaks():
        model = WorkerModel(**how)
        try:
            yield model
            await model.close()
            model.recorder.check(*model.requested)
        finally:
            await model.end()
        assert model.launcher.closed == 1
        assert model.unloaded == [None]
        del model


def open_files() -> int:
    """Return the number of open files, without shared memory that tensors use."""
    found = 0
    for name in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # the folder itself was open while it was read
            found += "/memfd:tritonpy" not in os.readlink(f"/proc/self/fd/{name}")
    return found


def _no_policy(name: str) -> BatchPolicy:
    raise AssertionError(f"unexpected policy {name}")
