from __future__ import annotations

import errno
import os

import numpy as np

from core.tests.toys.limiter import ResourceLimiter
from plugins.workers.tests.fake_worker import on_loop
from plugins.workers.tests.worker_model import SHORT_NS, next_iteration, worker_model
from tritonpy.runners.direct_scheduler import DirectScheduler


class RaisingScheduler(DirectScheduler):
    """Raises on request."""

    ready_fails = take_fails_after = None

    def ready(self, instance, now_ns):
        if self.ready_fails:
            raise self.ready_fails
        return super().ready(instance, now_ns)

    def take(self, instance, now_ns, limit=1):
        if self.take_fails_after is not None:
            if not self.take_fails_after:
                self.take_fails_after = None
                raise ValueError("cannot be cut")
            self.take_fails_after -= 1
        return super().take(instance, now_ns, limit)


@on_loop
async def test_a_raising_scheduler_fails_its_requests_and_later_ones_are_served():
    async with worker_model(scheduler=RaisingScheduler) as model:
        (worker,) = await model.start()
        first = model.ask(1)
        given = await worker.one()
        waiting = [model.ask(number) for number in (2, 3)]
        model.scheduler.ready_fails = ValueError("not today")
        worker.echo(given)
        assert await model.values(first) == [[1]]
        assert all("not today" not in error for error in await model.errors(*waiting))
        model.scheduler.ready_fails = None
        after = model.ask(4)
        worker.echo(await worker.one())
        assert await model.values(after) == [[4]]


@on_loop
async def test_batches_taken_before_the_scheduler_raised_are_executed():
    async with worker_model(scheduler=RaisingScheduler) as model:
        (worker,) = await model.start()
        warm = model.ask(0)
        worker.echo(await worker.one(), took_ns=SHORT_NS)
        await model.values(warm)
        model.scheduler.take_fails_after = 2
        requests = [model.ask(number) for number in range(4)]
        given = await worker.given()
        assert len(given) == 2
        worker.echo(*given)
        assert await model.values(*requests[:2]) == [[0], [1]]
        assert all(await model.errors(*requests[2:]))


@on_loop
async def test_a_raising_limiter_is_called_again():
    class Broken(ResourceLimiter):
        broken = False

        def acquire(self, instance, granted):
            if self.broken:
                raise ValueError("out of order")
            return super().acquire(instance, granted)

    limiter = Broken({})
    async with worker_model(limiter=limiter) as model:
        (worker,) = await model.start()
        await next_iteration()
        limiter.broken = True
        assert all(await model.errors(model.ask(1)))
        limiter.broken = False
        request = model.ask(2)
        worker.echo(await worker.one())
        assert await model.values(request) == [[2]]


@on_loop
async def test_inputs_without_shared_memory_fail_only_their_requests(monkeypatch):
    def full(*_arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    async with worker_model() as model:
        (worker,) = await model.start()
        with monkeypatch.context() as patch:
            patch.setattr(os, "ftruncate", full)
            large = model.send(np.zeros((1, 100_000), np.int32))
            small = model.ask(1)
            (error,) = await model.errors(large)
        assert error == "no shared memory for the inputs: [Errno 28] No space left on device"
        worker.echo(await worker.one())
        assert await model.values(small) == [[1]]


@on_loop
async def test_a_request_that_cannot_be_encoded_fails_alone():
    async with worker_model() as model:
        (worker,) = await model.start()
        strange = model.ask(1, parameters={"a": object()})
        plain = model.ask(2)
        assert all("not JSON serializable" in error for error in await model.errors(strange))
        worker.echo(await worker.one())
        assert await model.values(plain) == [[2]]


@on_loop
async def test_an_execution_beyond_the_limit_kills_the_worker():
    async with worker_model(limit_s=0.001) as model:
        (worker,) = await model.start()
        worker.progress.begin(1)
        request = model.ask(1)
        (error,) = await model.errors(request)
        assert error.endswith("is not healthy: an execution took longer than the limit of 0.001 s.")
        assert worker.killed
        await (await model.launcher.next()).started()


@on_loop
async def test_a_worker_within_the_limit_lives(monkeypatch):
    async with worker_model(limit_s=3600.0) as model:
        (worker,) = await model.start()
        for number in range(3):
            request = model.ask(number)
            worker.echo(await worker.one())
            assert await model.values(request) == [[number]]
        model.runner._instances[0]._check_limit()
        assert not worker.killed
