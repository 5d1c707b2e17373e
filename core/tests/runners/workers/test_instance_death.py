from __future__ import annotations

import asyncio
import threading

import pytest

from core.tests.runners.workers.fake_worker import eventually, on_loop
from core.tests.runners.workers.worker_model import turn, worker_model
from tritonpy.errors import Unavailable
from tritonpy.ipc import Kind
from tritonpy.runners.workers import backoff


@pytest.fixture(autouse=True)
def _restarts_are_quick(monkeypatch):
    monkeypatch.setattr(backoff, "_FIRST_S", 0.001)


@on_loop
async def test_the_requests_of_a_worker_that_dies_fail_and_those_that_wait_are_served_by_the_next():
    async with worker_model() as model:
        (worker,) = await model.start()
        lost, waiting = model.ask(1), model.ask(2)
        await worker.one()
        worker.exit(3)
        assert await model.errors(lost) == ["Stub process 'm_0_0' is not healthy: it exited with status 3."]
        again = await model.launcher.next()
        await again.started()
        again.echo(await again.one())
        assert await model.values(waiting) == [[2]]


@on_loop
async def test_requests_that_come_while_a_dead_worker_is_reaped_are_served_by_the_next():
    async with worker_model() as model:
        (worker,) = await model.start()
        reaped = threading.Event()
        worker.wait = lambda _limit: reaped.wait(10) and -11
        worker.hang_up()
        await eventually(lambda: model.runner._instances[0].worker.ending)
        request = model.ask(1)
        await turn()
        assert model.model.waiting == 1
        worker.exit(-11)
        reaped.set()
        again = await model.launcher.next()
        await again.started()
        again.echo(await again.one())
        assert await model.values(request) == [[1]]


@on_loop
async def test_while_a_dead_worker_is_reaped_the_other_instance_serves():
    async with worker_model(instances=2) as model:
        one, two = await model.start()
        reaped = threading.Event()
        one.wait = lambda _limit: reaped.wait(10) and -11
        one.hang_up()
        await eventually(lambda: model.runner._instances[0].worker.ending)
        request = model.ask(1)
        two.echo(await two.one())
        assert await model.values(request) == [[1]]
        one.exit(-11)
        reaped.set()
        await (await model.launcher.next()).started()


@on_loop
async def test_an_instance_that_dies_leaves_what_it_was_just_rung_for_to_the_other():
    async with worker_model(instances=2) as model:
        one, two = await model.start()
        first, second = model.runner._instances.values()
        await eventually(lambda: first.slot.idle and second.slot.idle)
        withdraw, requests = model.model.dispatcher.withdraw, []

        def ask_before(slot):
            if slot is first.slot and not requests:
                requests.append(model.ask(1))
                assert not slot.idle
            withdraw(slot)

        model.model.dispatcher.withdraw = ask_before
        one.exit(1)
        two.echo(await two.one())
        assert await model.values(*requests) == [[1]]
        await (await model.launcher.next()).started()


@on_loop
async def test_a_worker_that_cannot_start_again_has_requests_refused_until_it_can():
    async with worker_model() as model:
        (worker,) = await model.start()
        worker.exit(1)
        await (await model.launcher.next()).failed("the weights are gone")
        await eventually(lambda: model.runner._instances[0].broken is not None)
        refused = model.ask(1)
        (error,) = await model.answers(refused)
        assert isinstance(error.error, Unavailable)
        assert error.error.message == (
            "Stub process 'm_0_0' is not healthy: it failed to start again: the weights are gone"
        )
        assert not model.runner.alive()
        again = await model.launcher.next()
        await again.started()
        await eventually(model.runner.alive)
        request = model.ask(2)
        again.echo(await again.one())
        assert await model.values(request) == [[2]]


@on_loop
async def test_what_waits_when_the_restart_fails_is_refused():
    async with worker_model() as model:
        (worker,) = await model.start()
        worker.exit(1)
        failing = await model.launcher.next()
        waiting = [model.ask(number) for number in range(3)]
        await failing.failed("no luck")
        assert [error.endswith("no luck") for error in await model.errors(*waiting)] == [True] * 3
        await (await model.launcher.next()).started()


@on_loop
async def test_while_another_instance_lives_nothing_is_refused():
    async with worker_model(instances=2) as model:
        one, two = await model.start()
        one.exit(1)
        await (await model.launcher.next()).failed("never again")
        await eventually(lambda: model.runner._instances[0].broken is not None)
        requests = [model.ask(number) for number in range(3)]
        for _ in requests:
            two.echo(await two.one())
        assert await model.values(*requests) == [[0], [1], [2]]
        await (await model.launcher.next()).started()


@on_loop
async def test_a_worker_that_dies_young_is_started_again_later_and_later(monkeypatch):
    waits = []

    async def sleep(delay_s):
        waits.append(delay_s)

    async with worker_model() as model:
        (worker,) = await model.start()
        with monkeypatch.context() as patch:
            patch.setattr("tritonpy.runners.workers.instance.asyncio.sleep", sleep)
            for _ in range(4):
                worker.exit(1)
                worker = await asyncio.wait_for(model.launcher._waiting.get(), 10)
                await worker.started()
                await eventually_alive(model)
        assert waits == [0.001, 0.002, 0.004]


async def eventually_alive(model):
    ready = asyncio.Event()

    def look():
        if model.runner.alive():
            ready.set()
        else:
            asyncio.get_running_loop().call_soon(look)

    look()
    await ready.wait()


@on_loop
async def test_a_model_that_is_unloaded_while_its_worker_waits_to_be_started_again_is_gone_at_once(monkeypatch):
    monkeypatch.setattr(backoff, "_FIRST_S", 3600.0)
    async with worker_model() as model:
        (worker,) = await model.start()
        worker.exit(1)
        await (await model.launcher.next()).failed("once")
        await eventually(lambda: model.runner._instances[0].broken is not None)


@on_loop
async def test_a_worker_that_is_just_being_started_again_ends_with_the_model():
    async with worker_model() as model:
        (worker,) = await model.start()
        worker.exit(1)
        again = await model.launcher.next()
        await again.receive(Kind.START)
        await model.unload()
        assert again.killed
