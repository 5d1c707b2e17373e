from __future__ import annotations

import asyncio

from core.tests.toys.limiter import ResourceLimiter
from plugins.workers.tests.fake_worker import eventually, on_loop
from plugins.workers.tests.worker_model import LONG_NS, NEEDS_ONE, next_iteration, worker_model
from tritonpy_ipc import Kind


@on_loop
async def test_waiting_for_the_rate_limiter_takes_no_thread():
    limiter = ResourceLimiter({"R": 1})
    async with worker_model(limiter=limiter, group=NEEDS_ONE) as model:
        (worker,) = await model.start()
        await eventually(lambda: limiter._free["R"] == 1)
        limiter.register("other", 0, model.context.config.instance_group[0])
        assert limiter.acquire("other", print)
        request = model.ask(1)
        await next_iteration()
        limiter.wait_for_queue(1)
        assert (worker.frames, request.finished) == ([], False)
        await asyncio.to_thread(limiter.release, "other")
        given = await worker.one()
        assert limiter._free["R"] == 0
        worker.echo(given)
        assert await model.values(request) == [[1]]
        await eventually(lambda: limiter._free["R"] == 1)
        limiter.unregister("other")
    assert limiter.demands == {}


@on_loop
async def test_an_instance_that_waits_for_a_lease_does_not_request_another():
    class Counting(ResourceLimiter):
        requested = 0

        def acquire(self, instance, granted):
            self.requested += 1
            return super().acquire(instance, granted)

    limiter = Counting({"R": 1})
    async with worker_model(limiter=limiter, group=NEEDS_ONE) as model:
        (worker,) = await model.start()
        await eventually(lambda: limiter._free["R"] == 1)
        limiter.register("other", 0, model.context.config.instance_group[0])
        assert limiter.acquire("other", print)
        limiter.requested = 0
        requests = []
        for number in range(3):
            requests.append(model.ask(number))
            model.runner._instances[0].feed()
            await next_iteration()
        assert limiter.requested == 1
        limiter.release("other")
        for _ in requests:
            worker.echo(await worker.one(), took_ns=LONG_NS)
        await model.values(*requests)
        limiter.unregister("other")


@on_loop
async def test_a_grant_during_unloading_is_released():
    limiter = ResourceLimiter({"R": 1})
    async with worker_model(limiter=limiter, group=NEEDS_ONE) as model:
        (worker,) = await model.start()
        await eventually(lambda: limiter._free["R"] == 1)
        limiter.register("other", 0, model.context.config.instance_group[0])
        assert limiter.acquire("other", print)
        request = model.ask(1)
        await next_iteration()
        request.cancel()
        closing = model.unload()
        await worker.receive(Kind.STOP)
        limiter.release("other")
        await next_iteration()
        worker.exit(0)
        await closing
        assert limiter._free["R"] == 1
        limiter.unregister("other")


@on_loop
async def test_a_request_goes_to_an_instance_that_needs_no_lease():
    class OnlySecond(ResourceLimiter):
        strict = False

        def acquire(self, instance, granted):
            return instance.startswith("m_0_1") or not self.strict

    limiter = OnlySecond({})
    async with worker_model(instances=2, limiter=limiter) as model:
        _, two = await model.start()
        first, second = model.runner._instances.values()
        await eventually(lambda: first.slot.idle and second.slot.idle)
        limiter.strict = True
        for number in range(3):
            request = model.ask(number)
            two.echo(await two.one())
            assert await model.values(request) == [[number]]


@on_loop
async def test_of_two_instances_that_share_a_resource_one_executes_at_a_time():
    limiter = ResourceLimiter({"R": 1})
    async with worker_model(instances=2, limiter=limiter, group=NEEDS_ONE) as model:
        workers = await model.start()
        requests = [model.ask(number) for number in range(6)]
        for _ in requests:
            await eventually(lambda: limiter._free["R"] == 0)
            given = [asyncio.ensure_future(worker.one()) for worker in workers]
            done, pending = await asyncio.wait(given, return_when=asyncio.FIRST_COMPLETED)
            assert len(done) == 1
            for each in pending:
                each.cancel()
            await asyncio.wait(given)
            index = next(index for index, each in enumerate(given) if each in done)
            workers[index].echo(given[index].result(), took_ns=LONG_NS)
            await model.values(requests[given[index].result().rows[0][0].data.item()])
        await eventually(lambda: limiter._free["R"] == 1)


@on_loop
async def test_a_grant_to_a_dead_instance_is_released():
    limiter = ResourceLimiter({"R": 1})
    async with worker_model(limiter=limiter, group=NEEDS_ONE) as model:
        (worker,) = await model.start()
        await eventually(lambda: limiter._free["R"] == 1)
        limiter.register("other", 0, model.context.config.instance_group[0])
        assert limiter.acquire("other", print)
        request = model.ask(1)
        await next_iteration()
        worker.exit(1)
        again = await model.launcher.next()
        await asyncio.to_thread(limiter.release, "other")
        await eventually(lambda: limiter._free["R"] == 1)
        await again.started()
        again.echo(await again.one())
        assert await model.values(request) == [[1]]
        await eventually(lambda: limiter._free["R"] == 1)
        limiter.unregister("other")


@on_loop
async def test_a_dead_instance_releases_its_lease():
    limiter = ResourceLimiter({"R": 1})
    async with worker_model(limiter=limiter, group=NEEDS_ONE) as model:
        (worker,) = await model.start()
        request = model.ask(1)
        await worker.one()
        assert limiter._free["R"] == 0
        worker.exit(1)
        await model.errors(request)
        again = await model.launcher.next()
        assert limiter._free["R"] == 1
        await again.started()
