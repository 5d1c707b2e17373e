from __future__ import annotations

import asyncio

from core.tests.runners.workers.fake_worker import eventually, on_loop
from core.tests.runners.workers.worker_model import LONG_NS, NEEDS_ONE, turn, worker_model
from core.tests.toys.limiter import ResourceLimiter
from tritonpy.ipc import Kind


@on_loop
async def test_a_rate_limiter_that_says_no_is_waited_for_without_a_thread():
    limiter = ResourceLimiter({"R": 1})
    async with worker_model(limiter=limiter, group=NEEDS_ONE) as model:
        (worker,) = await model.start()
        await eventually(lambda: limiter._free["R"] == 1)
        limiter.register("other", 0, model.context.config.instance_group[0])
        assert limiter.acquire("other", print)
        request = model.ask(1)
        await turn()
        limiter.wait_for_queue(1)
        assert (worker.frames, request.answered) == ([], False)
        await asyncio.to_thread(limiter.release, "other")
        given = await worker.one()
        assert limiter._free["R"] == 0
        worker.echo(given)
        assert await model.values(request) == [[1]]
        await eventually(lambda: limiter._free["R"] == 1)
        limiter.unregister("other")
    assert limiter.needs == {}


@on_loop
async def test_an_instance_that_waits_for_its_turn_does_not_ask_again():
    class Counting(ResourceLimiter):
        asked = 0

        def acquire(self, instance, granted):
            self.asked += 1
            return super().acquire(instance, granted)

    limiter = Counting({"R": 1})
    async with worker_model(limiter=limiter, group=NEEDS_ONE) as model:
        (worker,) = await model.start()
        await eventually(lambda: limiter._free["R"] == 1)
        limiter.register("other", 0, model.context.config.instance_group[0])
        assert limiter.acquire("other", print)
        limiter.asked = 0
        requests = []
        for number in range(3):
            requests.append(model.ask(number))
            model.runner._instances[0].feed()
            await turn()
        assert limiter.asked == 1
        limiter.release("other")
        for _ in requests:
            worker.echo(await worker.one(), took_ns=LONG_NS)
        await model.values(*requests)
        limiter.unregister("other")


@on_loop
async def test_a_grant_that_comes_while_the_model_ends_is_given_back():
    limiter = ResourceLimiter({"R": 1})
    async with worker_model(limiter=limiter, group=NEEDS_ONE) as model:
        (worker,) = await model.start()
        await eventually(lambda: limiter._free["R"] == 1)
        limiter.register("other", 0, model.context.config.instance_group[0])
        assert limiter.acquire("other", print)
        request = model.ask(1)
        await turn()
        request.cancel()
        closing = model.unload()
        await worker.receive(Kind.STOP)
        limiter.release("other")
        await turn()
        worker.exit(0)
        await closing
        assert limiter._free["R"] == 1
        limiter.unregister("other")


@on_loop
async def test_what_one_instance_may_not_execute_now_goes_to_one_that_may():
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
async def test_a_grant_to_an_instance_that_died_meanwhile_is_given_back():
    limiter = ResourceLimiter({"R": 1})
    async with worker_model(limiter=limiter, group=NEEDS_ONE) as model:
        (worker,) = await model.start()
        await eventually(lambda: limiter._free["R"] == 1)
        limiter.register("other", 0, model.context.config.instance_group[0])
        assert limiter.acquire("other", print)
        request = model.ask(1)
        await turn()
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
async def test_an_instance_that_dies_gives_its_permission_back():
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
