from __future__ import annotations

import asyncio

import numpy as np
import pytest

from plugins.workers.tests.fake_worker import on_loop
from plugins.workers.tests.scripted_worker import EMPTY, FINAL
from plugins.workers.tests.worker_model import next_iteration, worker_model
from tritonpy.runners.warmup import WarmupSample
from tritonpy_engine_rpc import processes
from tritonpy_ipc import Kind
from tritonpy_types import Tensor
from tritonpy_types.errors import Code, InvalidArgument, NotFound


@pytest.fixture(autouse=True)
def _restarts_are_quick(monkeypatch):
    monkeypatch.setattr(processes, "_FIRST_S", 0.001)


def samples(count=1, rows=1):
    """Return a function that returns a sample of the numbers 100, 101, …"""
    inputs = [
        {"IN": Tensor.from_numpy("IN", np.array([[100 + row]], np.int32))} for row in range(rows)
    ]
    return lambda: [WarmupSample("cold", count, inputs)]


def numbers(given):
    return [row[0].data.ravel().tolist() for row in given.rows]


async def loading(model):
    """Begin to load; return the task and the started worker."""
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
            await next_iteration()
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
async def test_warmup_waits_for_the_execution_and_the_last_responses():
    async with worker_model(samples=samples(), decoupled=True) as model:
        task, worker = await loading(model)
        given = await worker.one()
        (number,) = given.numbers
        worker.send_responses([(number, 0, given.rows[0])])
        await next_iteration()
        worker.send_responses([], [given])
        await next_iteration()
        assert not task.done()
        worker.send_responses([(number, FINAL | EMPTY, [])])
        await task


@on_loop
async def test_warmup_continues_after_an_early_response():
    async with worker_model(samples=samples()) as model:
        task, worker = await loading(model)
        given = await worker.one()
        worker.send_responses([(given.numbers[0], FINAL, given.rows[0])])
        await next_iteration()
        assert not task.done()
        worker.send_responses([], [given])
        await task


@on_loop
async def test_an_error_response_fails_the_load_and_ends_the_worker():
    async with worker_model(samples=samples(rows=2)) as model:
        task, worker = await loading(model)
        given = await worker.one()
        errors = {"0": [int(Code.INTERNAL), "too cold"]}
        worker.send_responses(
            [(number, FINAL, []) for number in given.numbers], [given], errors=errors
        )
        await worker.stop()
        with pytest.raises(
            InvalidArgument, match=r"^failed to run warmup sample 'cold': too cold; $"
        ):
            await task


@on_loop
async def test_the_death_of_the_worker_fails_the_load():
    async with worker_model(samples=samples(rows=2)) as model:
        task, worker = await loading(model)
        await worker.one()
        worker.exit(3)
        message = "Stub process 'm_0_0' is not healthy: it exited with status 3.; "
        with pytest.raises(
            InvalidArgument, match=f"^failed to run warmup sample 'cold': {message}{message}$"
        ):
            await task


@on_loop
async def test_a_worker_that_dies_after_its_responses_does_not_serve():
    async with worker_model(samples=samples()) as model:
        task, worker = await loading(model)
        given = await worker.one()
        worker.send_responses([(given.numbers[0], FINAL, given.rows[0])])
        await next_iteration()
        worker.exit(3)
        with pytest.raises(
            Exception, match=r"^Stub process 'm_0_0' is not healthy: it exited with status 3\.$"
        ):
            await task


@on_loop
async def test_an_endless_execution_is_killed_at_the_limit():
    async with worker_model(samples=samples(), limit_s=0.02) as model:
        task, worker = await loading(model)  # it reads none of its frames
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
async def test_no_requests_join_a_warmup():
    async with worker_model(samples=samples()) as model:
        task, worker = await loading(model)
        given = await worker.one()
        worker.send(Kind.QUERY, [1], extras={"verb": "take_more", "arguments": {"count": 4}})
        reply = await worker.receive(Kind.QUERY_RESULT)
        assert reply.extras.get("value") is None
        worker.echo(given)
        await task


@on_loop
async def test_a_restarted_worker_is_warmed_up_before_waiting_requests():
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
        await next_iteration()
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
        await next_iteration()
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
