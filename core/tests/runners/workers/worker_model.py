"""A model whose instances are scripted workers: everything round them is real."""

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

from core.tests.runners.workers.fake_worker import eventually, neighbours_of
from core.tests.runners.workers.scripted_worker import ScriptedLauncher, ScriptedWorker
from tritonpy.api.backend import Backend, InstanceContext, ModelContext
from tritonpy.api.batch_policy import BatchPolicy
from tritonpy.api.options import NoOptions
from tritonpy.api.rate_limiter import NoRateLimiter, RateLimiter
from tritonpy.api.scheduler import UNBOUNDED, Scheduler, SchedulerContext
from tritonpy.direct import DirectScheduler
from tritonpy.model.loaded import LoadedModel
from tritonpy.model.request_check import RequestCheck
from tritonpy.runners.rings import Rings
from tritonpy.runners.thread_pool import ThreadPool
from tritonpy.runners.timer import Timer
from tritonpy.runners.warmup import MakeSamples
from tritonpy.runners.workers.lifeline import lifeline
from tritonpy.runners.workers.runner import WorkerRunner
from tritonpy.testing.parse import model_config
from tritonpy.testing.toy_engine import ToyEngine
from tritonpy.testing.witness import Witness
from tritonpy.types import Batch, InferRequest, InferResponse, Tensor

SHORT_NS, LONG_NS = 1_000, 10_000_000  # executions that are given many at once, and one at a time
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
    """Hands out everything that waits at once; a batch that waits may grow."""

    prefetch = False

    def take(self, instance: int, now_ns: int, limit: int = UNBOUNDED) -> Batch | None:
        queue = self._queue
        return Batch([queue.popleft() for _ in range(min(len(queue), limit))]) if queue else None


class WorkerModel:
    """A loaded model, its workers, and everybody who asks it."""

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
        config = model_config(CONFIG % (datatype, datatype, instances, group, str(decoupled).lower()))
        folder = Path("nowhere")
        self.engine = ToyEngine()
        log = logging.LoggerAdapter(logging.getLogger("tritonpy.backend"), {"model": "m", "version": 1})
        self.context = ModelContext("m", 1, config, folder, folder, {}, {}, NoOptions(), self.engine, log)
        self.timer, self.rings, self.limiter = Timer(), Rings(), limiter or NoRateLimiter()
        self.background = ThreadPool("background", 1)
        self.rings.attach(loop)
        self.model = LoadedModel(self.context, RequestCheck(config, "m"), {}, self.timer, (), self.rings)
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
            self.rings,
            self.background,
            self.limiter,
            self.model.guards,
            neighbours_of(self.engine),
            self.scheduler.prefetch,
            samples,
        )
        self.model.runner = self.runner
        self.witness = Witness()
        self.asked: list[InferRequest] = []
        self.workers: list[ScriptedWorker] = []
        self._unloading: asyncio.Future[None] | None = None

    async def start(self, **said: Any) -> list[ScriptedWorker]:
        """Load the model; return its workers in the order of the instances."""
        starting = asyncio.ensure_future(self.load())
        workers = [await self.launcher.next() for _ in range(self.count)]
        self.workers = sorted(workers, key=lambda worker: worker.name)
        for worker in self.workers:
            await worker.started(**said)
        await starting
        return self.workers

    async def load(self) -> None:
        """Start the runner as a loading thread does. Raises what it raises."""
        group = self.context.config.instance_group[0]
        contexts = [InstanceContext(f"m_0_{index}", "CPU", 0, index) for index in range(self.count)]
        await asyncio.to_thread(self.runner.add, [(context, group) for context in contexts])
        self.runner.serve(range(self.count))

    def ask(self, *values: int, **fields: Any) -> InferRequest:
        """Send INT32 values as input IN, one row."""
        return self.send(np.array([values], np.int32), **fields)

    def send(self, array: Any, **fields: Any) -> InferRequest:
        request = InferRequest("m", {"IN": Tensor.from_numpy("IN", array)}, self.witness.sink, **fields)
        self.asked.append(request)
        self.model.infer(request)
        return request

    async def answers(self, *requests: InferRequest) -> list[InferResponse]:
        """Wait for the final answer of each request; return the last answer of each."""
        await eventually(lambda: all(request.answered for request in requests))
        return [answers[-1] for answers in self.witness.wait(*requests)]

    async def values(self, *requests: InferRequest) -> list[list[int]]:
        """Wait, and return what each was answered; raises the error that it was answered."""
        found = []
        for answer in await self.answers(*requests):
            if answer.error is not None:
                raise answer.error
            found.append(answer.outputs[0].numpy().ravel().tolist())
        return found

    async def errors(self, *requests: InferRequest) -> list[str]:
        """Wait, and return the error of each."""
        return [answer.error.message if answer.error else "" for answer in await self.answers(*requests)]

    def unload(self) -> asyncio.Future[None]:
        """Begin to unload the model, once; what is returned is done when it is gone."""
        if self._unloading is None:
            self._unloading = asyncio.ensure_future(asyncio.to_thread(self.model.close))
        return self._unloading

    async def close(self) -> None:
        """Unload the model, with workers that stop when they are asked to."""
        unloading = self.unload()
        for worker in [each for each in self.launcher.workers if not each.over]:
            await worker.stop()
        await unloading

    async def end(self) -> None:
        """Leave nothing behind, also where a test failed in the middle."""
        unloading = self.unload()
        while not unloading.done():
            for worker in self.launcher.workers:
                worker.kill()
            self.model.give_up()
            await asyncio.sleep(0)
        self.timer.stop()
        self.background.close()
        self.engine.__exit__()


async def turn() -> None:
    """Let everything happen that is due."""
    for _ in range(5):
        await asyncio.sleep(0)


@asynccontextmanager
async def nothing_left() -> AsyncIterator[None]:
    """See to it that what is inside leaves no task, no open file and no error that only the loop was told of."""
    complaints: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, said: complaints.append(said))
    os.close(lifeline())  # there is one per process, made for the first worker
    before = open_files()
    yield
    await eventually(lambda: asyncio.all_tasks() == {asyncio.current_task()})
    gc.collect()
    assert complaints == []
    assert open_files() == before


@asynccontextmanager
async def worker_model(**how: Any) -> AsyncIterator[WorkerModel]:
    """Make a model that is not loaded yet; at the end it is unloaded, every request had one final answer, and nothing is left."""
    async with nothing_left():
        model = WorkerModel(**how)
        try:
            yield model
            await model.close()
            model.witness.check(*model.asked)
        finally:
            await model.end()
        assert model.launcher.closed == 1
        assert model.unloaded == [None]
        del model


def open_files() -> int:
    """Return how many files are open, without the shared memory that tensors lie in: who holds a tensor holds that."""
    found = 0
    for name in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # the folder itself was open while it was read
            found += "/memfd:tritonpy" not in os.readlink(f"/proc/self/fd/{name}")
    return found


def _no_policy(name: str) -> BatchPolicy:
    raise AssertionError(f"nobody here asks for the policy {name}")
