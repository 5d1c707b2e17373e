from __future__ import annotations

import asyncio
import threading

import pytest

from plugins.workers.tests.fake_worker import eventually, on_loop
from plugins.workers.tests.worker_model import SHORT_NS, Batching, next_iteration, worker_model
from tritonpy.runners.direct_scheduler import DirectScheduler
from tritonpy_engine_rpc import processes
from tritonpy_ipc import Kind
from tritonpy_types.errors import Unavailable
from tritonpy_workers import instance


@pytest.fixture(autouse=True)
def _restarts_are_quick(monkeypatch):
    monkeypatch.setattr(processes, "_FIRST_S", 0.001)


@on_loop
async def test_the_requests_of_a_worker_that_dies_fail_and_those_that_wait_are_served_by_the_next():
    async with worker_model() as model:
        (worker,) = await model.start()
        lost, waiting = model.ask(1), model.ask(2)
        await worker.one()
        worker.exit(3)
        assert await model.errors(lost) == [
            "Stub process 'm_0_0' is not healthy: it exited with status 3."
        ]
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
        await next_iteration()
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
async def test_a_dying_instance_leaves_its_wakeup_to_the_other():
    async with worker_model(instances=2) as model:
        one, two = await model.start()
        first, second = model.runner._instances.values()
        await eventually(lambda: first.slot.idle and second.slot.idle)
        withdraw, requests = model.model.dispatcher.unmark_idle, []

        def ask_before(slot):
            if slot is first.slot and not requests:
                requests.append(model.ask(1))
                assert not slot.idle
            withdraw(slot)

        model.model.dispatcher.unmark_idle = ask_before
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
            "Stub process 'm_0_0' is not healthy: it failed to restart: the weights are gone"
        )
        assert not model.runner.alive()
        again = await model.launcher.next()
        await again.started()
        await eventually(model.runner.alive)
        request = model.ask(2)
        again.echo(await again.one())
        assert await model.values(request) == [[2]]


@on_loop
async def test_waiting_requests_are_refused_when_the_restart_fails():
    async with worker_model() as model:
        (worker,) = await model.start()
        worker.exit(1)
        failing = await model.launcher.next()
        waiting = [model.ask(number) for number in range(3)]
        await failing.failed("no luck")
        assert [error.endswith("no luck") for error in await model.errors(*waiting)] == [True] * 3
        await (await model.launcher.next()).started()


@on_loop
async def test_while_another_instance_lives_no_request_is_refused():
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
async def test_while_others_serve_a_worker_that_dies_early_restarts_after_a_delay(monkeypatch):
    monkeypatch.setattr(processes, "_FIRST_S", 3600.0)
    monkeypatch.setattr(processes, "_MAX_DELAY_S", 3600.0)
    async with worker_model(instances=2) as model:
        one, two = await model.start()
        one.exit(1)
        one = await model.launcher.next()
        await one.started()
        await eventually_alive(model)
        one.exit(1)
        instance = model.runner._instances[0]
        await eventually(lambda: instance._pause is not None)
        for number in range(3):
            request = model.ask(number)
            two.echo(await two.one())
            assert await model.values(request) == [[number]]
        assert instance._pause is not None


@on_loop
async def test_the_restart_delay_ends_when_only_this_worker_can_serve_a_request(monkeypatch):
    monkeypatch.setattr(processes, "_FIRST_S", 3600.0)
    monkeypatch.setattr(processes, "_MAX_DELAY_S", 3600.0)
    async with worker_model() as model:
        (worker,) = await model.start()
        # The first restart is immediate, the others are not.
        for waits_before in (False, False, True):
            if waits_before:
                worker.progress.begin(2)
                model.ask(1)
                waiting = model.ask(7)
                await eventually(lambda: model.runner._instances[0].slot.open)
            worker.exit(1)
            await eventually(lambda: model.runner._instances[0].worker is None)
            if not waits_before:
                await next_iteration()
                waiting = model.ask(7)
            worker = await model.launcher.next()
            await worker.started()
            worker.echo(await worker.one())
            assert await model.values(waiting) == [[7]]


@on_loop
async def test_requests_that_a_dead_worker_had_not_begun_are_executed_by_the_next():
    async with worker_model() as model:
        (worker,) = await model.start()
        worker.echo(await after(model.ask(0), worker.one()), took_ns=SHORT_NS)
        await eventually(lambda: model.runner._instances[0].slot.idle)
        requests = [model.ask(number) for number in range(4)]
        _, *behind = await worker.given()
        assert len(behind) == 3
        worker.exit(3)
        again = await model.launcher.next()
        await again.started()
        left = 3
        while left:
            given = await again.given()
            left -= len(given)
            again.echo(*given)
        assert (await model.errors(*requests))[
            0
        ] == "Stub process 'm_0_0' is not healthy: it exited with status 3."
        assert await model.values(*requests[1:]) == [[1], [2], [3]]


@on_loop
async def test_a_finished_execution_with_lost_responses_runs_again_unless_decoupled():
    for decoupled in (False, True):
        async with worker_model(decoupled=decoupled) as model:
            (worker,) = await model.start()
            worker.echo(
                await after(model.ask(0, accepts_decoupled=True), worker.one()), took_ns=SHORT_NS
            )
            await eventually(lambda model=model: model.runner._instances[0].slot.idle)
            requests = [model.ask(number, accepts_decoupled=True) for number in range(2)]
            given = await worker.given()
            worker.progress.begin(given[1].id)
            worker.exit(3)
            again = await model.launcher.next()
            await again.started()
            if not decoupled:
                again.echo(await again.one())
            errors = await model.errors(*requests)
            assert [bool(error) for error in errors] == [decoupled, True]


@on_loop
async def test_a_request_that_was_on_two_workers_when_they_ended_is_not_given_to_a_third():
    async with worker_model(instances=2) as model:
        one, two = await model.start()
        request = model.ask(1)
        for _ in range(2):
            await eventually(lambda: request.batch is not None)
            lost = request.batch.instance.name
            {"m_0_0": one, "m_0_1": two}[lost].exit(9)  # before it begins
            await eventually(
                lambda lost=lost: request.batch is None or request.batch.instance.name != lost
            )
        error = f"Stub process '{lost}' is not healthy: it exited with status 9."
        assert await model.errors(request) == [error]
        for _ in range(2):
            await (await model.launcher.next()).started()


@on_loop
async def test_a_cancelled_request_is_not_executed_again():
    async with worker_model() as model:
        (worker,) = await model.start()
        request = model.ask(1)
        await eventually(lambda: request.batch is not None)
        request.cancelled = True  # the worker was notified but ends before it reads the message
        worker.exit(9)
        assert await model.errors(request) == ["Request cancelled"]
        await (await model.launcher.next()).started()


@on_loop
async def test_a_batch_that_a_dead_worker_had_not_begun_is_requeued():
    async with worker_model(scheduler=Batching) as model:
        (worker,) = await model.start()
        request = model.ask(1)
        await eventually(lambda: request.batch is not None)
        worker.exit(9)
        again = await model.launcher.next()
        await again.started()
        again.echo(await again.one())
        assert await model.values(request) == [[1]]


@on_loop
async def test_without_requeueing_unbegun_requests_fail_with_the_error():
    class Refusing(DirectScheduler):
        def requeue(self, requests):
            return requests

    async with worker_model(scheduler=Refusing) as model:
        (worker,) = await model.start()
        request = model.ask(1)
        await eventually(lambda: request.batch is not None)
        worker.exit(9)
        assert await model.errors(request) == [
            "Stub process 'm_0_0' is not healthy: it exited with status 9."
        ]
        await (await model.launcher.next()).started()


@on_loop
async def test_requests_wait_for_a_restart_up_to_a_limit(monkeypatch):
    monkeypatch.setattr(instance, "_START_LIMIT_S", 0.001)
    async with worker_model() as model:
        (worker,) = await model.start()
        model.runner._instances[0]._start_s = 0.0
        worker.exit(1)
        again = await model.launcher.next()
        request = model.ask(1)
        assert await model.errors(request) == [
            "Stub process 'm_0_0' is not healthy: it did not restart within 0.001 s"
        ]
        await again.started()
        await eventually_alive(model)
        request = model.ask(2)
        again.echo(await again.one())
        assert await model.values(request) == [[2]]


async def after(_request, waited):
    return await waited


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
async def test_unloading_during_a_restart_delay_is_immediate(monkeypatch):
    monkeypatch.setattr(processes, "_FIRST_S", 3600.0)
    async with worker_model() as model:
        (worker,) = await model.start()
        worker.exit(1)
        await (await model.launcher.next()).failed("once")
        await eventually(lambda: model.runner._instances[0].broken is not None)


@on_loop
async def test_a_restarting_worker_ends_with_the_model():
    async with worker_model() as model:
        (worker,) = await model.start()
        worker.exit(1)
        again = await model.launcher.next()
        await again.receive(Kind.START)
        await model.unload()
        assert again.killed
