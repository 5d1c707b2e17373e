from __future__ import annotations

import asyncio

import numpy as np
import pytest

from core.tests.runners.workers.fake_worker import on_loop
from core.tests.runners.workers.scripted_worker import EMPTY, FINAL
from core.tests.runners.workers.worker_model import turn, worker_model
from tritonpy.errors import Code, InvalidArgument, NotFound
from tritonpy.ipc import Kind
from tritonpy.runners.warmup import WarmupSample
from tritonpy.runners.workers import backoff
from tritonpy.types import Tensor


@pytest.fixture(autouse=True)
def _restarts_are_quick(monkeypatch):
    monkeypatch.setattr(backoff, "_FIRST_S", 0.001)


def samples(count=1, rows=1):
    """Return what makes a sample of the numbers 100, 101, …"""
    inputs = [{"IN": Tensor.from_numpy("IN", np.array([[100 + row]], np.int32))} for row in range(rows)]
    return lambda: [WarmupSample("cold", count, inputs)]


def numbers(given):
    return [row[0].data.ravel().tolist() for row in given.rows]


async def loading(model):
    """Begin to load; return the task and the worker, which has started."""
    task = asyncio.ensure_future(model.load())
    worker = await model.launcher.next()
    await worker.started()
    return task, worker


@on_loop
async def test_a_worker_runs_the_samples_before_it_serves():
    async with worker_model(samples=samples(count=2, rows=2)) as model:
        task, worker = await loading(model)
        for _ in range(2):
            given = await worker.one()
            assert numbers(given) == [[100], [101]]
            await turn()
            assert not task.done()
            worker.echo(given)
        await task
        request = model.ask(1)
        given = await worker.one()
        assert numbers(given) == [[1]]
        worker.echo(given)
        assert await model.values(request) == [[1]]
        assert model.model.statistics().execution_count == 1


@on_loop
async def test_an_execution_is_waited_for_to_its_end_and_so_are_the_last_answers():
    async with worker_model(samples=samples(), decoupled=True) as model:
        task, worker = await loading(model)
        given = await worker.one()
        (number,) = given.numbers
        worker.say([(number, 0, given.rows[0])])
        await turn()
        worker.say([], [given])
        await turn()
        assert not task.done()
        worker.say([(number, FINAL | EMPTY, [])])
        await task


@on_loop
async def test_an_answer_before_the_end_of_its_execution_is_not_the_end():
    async with worker_model(samples=samples()) as model:
        task, worker = await loading(model)
        given = await worker.one()
        worker.say([(given.numbers[0], FINAL, given.rows[0])])
        await turn()
        assert not task.done()
        worker.say([], [given])
        await task


@on_loop
async def test_an_error_for_an_answer_fails_the_load_and_ends_the_worker():
    async with worker_model(samples=samples(rows=2)) as model:
        task, worker = await loading(model)
        given = await worker.one()
        errors = {"0": [int(Code.INTERNAL), "too cold"]}
        worker.say([(number, FINAL, []) for number in given.numbers], [given], errors=errors)
        await worker.stop()
        with pytest.raises(InvalidArgument, match=r"^failed to run warmup sample 'cold': too cold; $"):
            await task


@on_loop
async def test_the_death_of_the_worker_fails_the_load():
    async with worker_model(samples=samples(rows=2)) as model:
        task, worker = await loading(model)
        await worker.one()
        worker.exit(3)
        said = "Stub process 'm_0_0' is not healthy: it exited with status 3.; "
        with pytest.raises(InvalidArgument, match=f"^failed to run warmup sample 'cold': {said}{said}$"):
            await task


@on_loop
async def test_a_worker_that_dies_behind_its_answers_serves_nobody():
    async with worker_model(samples=samples()) as model:
        task, worker = await loading(model)
        given = await worker.one()
        worker.say([(given.numbers[0], FINAL, given.rows[0])])
        await turn()
        worker.exit(3)
        with pytest.raises(Exception, match=r"^Stub process 'm_0_0' is not healthy: it exited with status 3\.$"):
            await task


@on_loop
async def test_an_execution_without_end_is_ended_at_the_workers_limit():
    async with worker_model(samples=samples(), limit_s=0.02) as model:
        task, worker = await loading(model)  # it reads nothing of what it is sent
        with pytest.raises(InvalidArgument, match=r"took longer than the limit of 0\.02 s"):
            await task
        assert worker.killed


@on_loop
async def test_the_limit_is_for_each_execution():
    async with worker_model(samples=samples(count=3), limit_s=60) as model:
        task, worker = await loading(model)
        for _ in range(3):
            worker.echo(await worker.one())
        await task


@on_loop
async def test_samples_that_cannot_be_made_fail_the_load():
    def no_samples():
        raise NotFound("failed to open text file for read x")

    async with worker_model(samples=no_samples) as model:
        task, worker = await loading(model)
        await worker.stop()
        with pytest.raises(NotFound, match="failed to open text file"):
            await task


@on_loop
async def test_nothing_joins_a_warm_up():
    async with worker_model(samples=samples()) as model:
        task, worker = await loading(model)
        given = await worker.one()
        worker.send(Kind.ASK, [1], extras={"verb": "take_more", "arguments": {"count": 4}})
        reply = await worker.receive(Kind.REPLY)
        assert reply.extras.get("value") is None
        worker.echo(given)
        await task


@on_loop
async def test_a_worker_that_is_started_again_is_warmed_up_again_before_those_who_wait():
    async with worker_model(samples=samples()) as model:
        task, worker = await loading(model)
        worker.echo(await worker.one())
        await task
        lost, waiting = model.ask(1), model.ask(2)
        await worker.one()
        worker.exit(3)
        await model.errors(lost)
        again = await model.launcher.next()
        await again.started()
        given = await again.one()
        assert numbers(given) == [[100]]
        await turn()
        assert model.model.waiting == 1
        again.echo(given)
        given = await again.one()
        assert numbers(given) == [[2]]
        again.echo(given)
        assert await model.values(waiting) == [[2]]


@on_loop
async def test_a_restart_whose_warm_up_fails_is_a_failed_start():
    async with worker_model(samples=samples()) as model:
        task, worker = await loading(model)
        worker.echo(await worker.one())
        await task
        worker.exit(3)
        again = await model.launcher.next()
        await again.started()
        await again.one()
        again.exit(4)
        last = await model.launcher.next()
        await last.started()
        given = await last.one()
        assert numbers(given) == [[100]]
        last.echo(given)
        await turn()
        request = model.ask(1)
        last.echo(await last.one())
        assert await model.values(request) == [[1]]


@on_loop
async def test_a_model_is_unloaded_in_the_middle_of_the_warm_up_of_a_restart():
    async with worker_model(samples=samples()) as model:
        task, worker = await loading(model)
        worker.echo(await worker.one())
        await task
        worker.exit(3)
        again = await model.launcher.next()
        await again.started()
        await again.one()
        await model.unload()
        assert again.killed
