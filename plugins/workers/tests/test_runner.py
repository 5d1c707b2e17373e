from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from core.tests.toys.limiter import ResourceLimiter
from plugins.workers.tests.fake_worker import eventually, on_loop
from plugins.workers.tests.scripted_worker import FINAL
from plugins.workers.tests.worker_model import next_iteration, worker_model
from tritonpy.api.contexts import InstanceContext
from tritonpy.runners.wakeups import Wakeups
from tritonpy_ipc import Kind
from tritonpy_types.errors import Code, Internal, InvalidArgument
from tritonpy_workers.runner import WorkerRunner


def test_workers_need_the_loop_of_a_started_server():
    class Named:
        name = "m"

    with pytest.raises(
        Internal, match="model 'm' runs in worker processes, which need the event loop"
    ):
        WorkerRunner(Named, None, None, None, Wakeups(), None, None, None, None, False)


@on_loop
async def test_every_instance_has_its_own_worker_and_all_start_concurrently():
    async with worker_model(instances=3) as model:
        loading = asyncio.ensure_future(model.load())
        workers = [await model.launcher.next() for _ in range(3)]
        assert sorted(worker.name for worker in workers) == ["m_0_0", "m_0_1", "m_0_2"]
        for worker in workers:
            assert not loading.done()
            await worker.started()
        await loading
        assert model.runner.alive()


@on_loop
async def test_one_worker_that_cannot_run_the_model_fails_the_load_and_the_others_are_stopped():
    limiter = ResourceLimiter({})
    async with worker_model(instances=2, limiter=limiter) as model:
        loading = asyncio.ensure_future(model.load())
        good, bad = await model.launcher.next(), await model.launcher.next()
        await good.started()
        await bad.failed("not on this device", Code.INVALID_ARG)
        await good.stop()
        with pytest.raises(InvalidArgument, match="not on this device"):
            await loading
        assert (good.killed, bad.killed, limiter.demands) == (False, False, {})


@on_loop
async def test_no_worker_starts_for_a_refused_resource_demand():
    class Strict(ResourceLimiter):
        def register(self, instance, device, group):
            if self.demands:
                raise InvalidArgument("only one may register")
            super().register(instance, device, group)

    limiter = Strict({})
    async with worker_model(instances=2, limiter=limiter) as model:
        with pytest.raises(InvalidArgument, match="only one may register"):
            await model.load()
        await model.unload()
        assert (model.launcher.workers, limiter.demands) == ([], {})


@on_loop
async def test_a_worker_gets_no_more_requests_than_its_limit():
    async with worker_model(decoupled=True) as model:
        (worker,) = await model.start(max_open=2)
        requests = [model.ask(number, accepts_decoupled=True) for number in range(3)]
        given = []
        for _ in range(2):
            given.append(await worker.one())
            worker.send_responses([], [given[-1]])
        await eventually(lambda: not model.runner._instances[0].worker.executions.running)
        assert model.model.waiting == 1
        worker.send_responses(
            [(given[1].numbers[0], FINAL, [])], parameters={"0": {"second": True}}
        )
        third = await worker.one()
        worker.send_responses(
            [(given[0].numbers[0], FINAL, []), (third.numbers[0], FINAL, [])], [third]
        )
        answers = await model.answers(*requests)
        assert [answer.parameters.get("second", False) for answer in answers] == [
            False,
            True,
            False,
        ]


@on_loop
async def test_without_a_readiness_check_a_model_is_ready_while_all_workers_live():
    async with worker_model(instances=2) as model:
        one, _ = await model.start()
        assert await asyncio.to_thread(model.runner.is_ready)
        one.exit(1)
        again = await model.launcher.next()
        assert not model.runner.alive()
        assert not await asyncio.to_thread(model.runner.is_ready)
        await again.started()
        await eventually(model.runner.alive)
        assert await asyncio.to_thread(model.runner.is_ready)


@pytest.mark.parametrize(("answers", "ready"), [((True, True), True), ((True, False), False)])
def test_a_model_with_checks_is_ready_when_every_worker_is(answers, ready):
    @on_loop
    async def test():
        async with worker_model(instances=2) as model:
            workers = await model.start(has_ready_check=True)
            calling = asyncio.ensure_future(asyncio.to_thread(model.runner.is_ready))
            for worker, answer in zip(workers, answers, strict=True):
                query = await worker.receive(Kind.QUERY)
                worker.send(Kind.QUERY_RESULT, query.words, extras={"value": answer})
            assert await calling is ready

    test()


@on_loop
async def test_a_cancellation_goes_to_the_worker_that_has_the_request():
    async with worker_model(instances=2) as model:
        one, two = await model.start()
        first, second = model.ask(1), model.ask(2)
        given = [await one.one(), await two.one()]
        second.cancel()
        assert list((await two.receive(Kind.CANCEL)).words) == given[1].numbers
        one.echo(given[0])
        two.echo(given[1])
        await model.values(first, second)
        assert one.frames == []


@on_loop
async def test_a_finished_request_is_not_cancelled_at_a_worker():
    async with worker_model() as model:
        (worker,) = await model.start()
        request = model.ask(1)
        worker.echo(await worker.one())
        await model.values(request)
        model.runner.cancelled(request)
        other = model.ask(2)
        worker.echo(await worker.one())  # no CANCEL came before it
        await model.values(other)


@on_loop
async def test_a_worker_that_fails_to_stop_does_not_block(caplog):
    async with worker_model(instances=2) as model:
        one, two = await model.start()
        instance = model.runner._instances[0]

        async def refuse():
            one.kill()
            raise RuntimeError("will not stop")

        instance.worker.stop = refuse
        unloading = model.unload()
        await two.stop()
        await unloading
    assert "a worker failed to stop: will not stop" in caplog.text


def test_shared_state_is_freed_after_the_last_worker():
    @on_loop
    async def test():
        async with worker_model() as model:
            (worker,) = await model.start()
            model.context.shared = "weights"
            unloading = model.unload()
            await worker.receive(Kind.STOP)
            assert (model.unloaded, model.launcher.closed) == ([], 0)
            worker.exit(0)
            await unloading
            assert (model.unloaded, model.launcher.closed, model.context.shared) == (
                ["weights"],
                1,
                None,
            )
            model.unloaded[:] = [None]

    test()


@on_loop
async def test_a_removed_worker_finishes_its_requests_and_takes_no_more():
    async with worker_model(instances=2) as model:
        workers = {worker.name: worker for worker in await model.start()}
        request = model.ask(1)
        names, given = [], []
        while not given:
            for name, worker in workers.items():
                with suppress(TimeoutError):
                    async with asyncio.timeout(0.01):
                        given.append(await worker.one())
                        names.append(name)
        (busy,) = names
        index = int(busy[-1])
        (gone,) = model.runner.remove([index])
        second = model.ask(2)
        other = workers[f"m_0_{1 - index}"]
        other.echo(await other.one())
        assert await model.values(second) == [[2]]
        assert not gone.done()
        workers[busy].echo(given[0])
        assert await model.values(request) == [[1]]
        await workers[busy].stop()
        await asyncio.wrap_future(gone)
        assert model.runner.alive()


@on_loop
async def test_added_workers_wait_until_they_serve():
    async with worker_model(instances=1) as model:
        (one,) = await model.start()
        context = InstanceContext("m_0_7", "CPU", 0, 7)
        adding = asyncio.ensure_future(
            asyncio.to_thread(model.runner.add, [(context, model.context.config.instance_group[0])])
        )
        two = await model.launcher.next()
        await two.started()
        await adding
        first = model.ask(1)
        given = await one.one()
        second = model.ask(2)
        await next_iteration()
        assert two.frames == []
        model.runner.serve([7])
        two.echo(await two.one())
        assert await model.values(second) == [[2]]
        one.echo(given)
        assert await model.values(first) == [[1]]
        assert [
            instance.prefetch_depth.is_only_instance
            for instance in model.runner._instances.values()
        ] == [
            False,
            False,
        ]
