"""One worker of a scripted process, without an instance."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

from plugins.workers.tests.fake_worker import model_context, nothing_more, registry_of
from plugins.workers.tests.scripted_worker import ScriptedLauncher
from plugins.workers.tests.worker_model import check_leaks
from tritonpy.api.contexts import InstanceContext
from tritonpy.runners.host_policies import HostPolicy
from tritonpy_testing.toy_engine import ToyEngine
from tritonpy_workers.worker import Worker

UNHEALTHY = "Stub process 'm_0_0' is not healthy: {}."


class WorkerBench:
    """A worker, its launcher and its reports."""

    def __init__(self, engine: ToyEngine, policy: HostPolicy | None = None) -> None:
        self.launcher = ScriptedLauncher()
        self.context = InstanceContext("m_0_0", "CPU", 0, 0)
        self.ended = []
        loop = asyncio.get_running_loop()
        self.worker = Worker(
            model_context(engine),
            self.context,
            self.launcher,
            registry_of(engine),
            loop,
            policy,
            lambda _: None,
            self.ended.append,
            nothing_more,
        )

    def start(self):
        """Begin to start the worker; return the task. The test plays the process."""
        return asyncio.ensure_future(self.worker.start())

    async def started(self, **fields):
        """Start the worker and return the process's end."""
        starting = self.start()
        process = await self.launcher.next()
        await process.started(**fields)
        await starting
        return process


@asynccontextmanager
async def one(policy=None):
    with ToyEngine() as engine:
        async with check_leaks():
            worker = WorkerBench(engine, policy)
            try:
                yield worker
            finally:
                for process in worker.launcher.workers:
                    process.kill()
                if worker.worker._ending is not None:
                    await worker.worker._ending
