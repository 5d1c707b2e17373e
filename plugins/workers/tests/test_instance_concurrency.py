"""Instances of a fast model on two processors: one executes at a time."""

from __future__ import annotations

import asyncio

import pytest

from core.tests.toys.limiter import ResourceLimiter
from plugins.workers.tests.fake_worker import eventually, on_loop
from plugins.workers.tests.worker_model import (
    NEEDS_ONE,
    SHORT_NS,
    Batching,
    next_iteration,
    worker_model,
)
from tritonpy_workers import concurrency_limiter, runner


@pytest.fixture(autouse=True)
def _unlimited_wait(monkeypatch):
    """Waiting instances are fed because of an event, not because of the time limit."""
    monkeypatch.setattr(concurrency_limiter, "_MAX_WAIT_NS", 1_000_000_000_000)
    monkeypatch.setattr(runner, "worker_capacity", lambda: 1)


async def given_to(workers):
    """Wait until a worker gets a batch; return its index and the batch."""
    given = [asyncio.ensure_future(worker.one()) for worker in workers]
    done, pending = await asyncio.wait(given, return_when=asyncio.FIRST_COMPLETED)
    for each in pending:
        each.cancel()
    await asyncio.wait(given)
    assert len(done) == 1
    index = next(index for index, each in enumerate(given) if each in done)
    return index, given[index].result()


async def make_fast(model, workers):
    """Let short executions of the model be recorded."""
    request = model.ask(0)
    index, given = await given_to(workers)
    workers[index].echo(given, took_ns=SHORT_NS)
    await model.values(request)


async def one_executes(model, workers):
    """Let one worker execute while a request waits for the other.

    Return the first worker, its execution, and both requests.
    """
    await make_fast(model, workers)
    first = model.ask(1)
    index, given = await given_to(workers)
    second = model.ask(2)
    await next_iteration()
    assert model.model.waiting == 1
    return index, given, first, second


@on_loop
async def test_a_waiting_request_runs_when_the_other_instance_finishes():
    async with worker_model(scheduler=Batching, instances=2) as model:
        workers = await model.start()
        index, given, first, second = await one_executes(model, workers)
        workers[index].echo(given, took_ns=SHORT_NS)
        index, given = await given_to(workers)
        workers[index].echo(given, took_ns=SHORT_NS)
        assert await model.values(first, second) == [[1], [2]]


@on_loop
async def test_a_waiting_request_runs_when_the_other_instance_dies():
    async with worker_model(scheduler=Batching, instances=2) as model:
        workers = await model.start()
        index, _, first, second = await one_executes(model, workers)
        workers[index].exit(-9)
        other = workers[1 - index]
        other.echo(await other.one(), took_ns=SHORT_NS)
        assert len(await model.errors(first)) == 1
        assert await model.values(second) == [[2]]
        await (await model.launcher.next()).started()


@on_loop
async def test_a_waiting_request_runs_when_the_other_instance_is_removed():
    async with worker_model(scheduler=Batching, instances=2) as model:
        workers = await model.start()
        index, given, first, second = await one_executes(model, workers)
        (gone,) = model.runner.remove([index])
        workers[index].echo(given, took_ns=SHORT_NS)
        other = workers[1 - index]
        other.echo(await other.one(), took_ns=SHORT_NS)
        assert await model.values(first, second) == [[1], [2]]
        workers[index].exit(0)
        await asyncio.wrap_future(gone)


@on_loop
async def test_inputs_without_memory_occupy_no_capacity(monkeypatch):
    async with worker_model(scheduler=Batching, instances=2) as model:
        workers = await model.start()
        await make_fast(model, workers)
        executions = [instance.worker.executions for instance in model.runner._instances.values()]

        def full(*_, **__):
            raise OSError("full")

        for each in executions:
            monkeypatch.setattr(each, "send", full)
        failed = model.ask(1)
        assert "full" in (await model.errors(failed))[0]
        monkeypatch.undo()
        request = model.ask(2)
        index, given = await given_to(workers)
        workers[index].echo(given, took_ns=SHORT_NS)
        assert await model.values(request) == [[2]]


@on_loop
async def test_a_rate_limiter_replaces_the_concurrency_limit():
    limiter = ResourceLimiter({"R": 2})
    async with worker_model(
        scheduler=Batching, instances=2, limiter=limiter, group=NEEDS_ONE
    ) as model:
        workers = await model.start()
        await make_fast(model, workers)
        requests = [model.ask(1)]
        index, given = await given_to(workers)
        requests.append(model.ask(2))
        other = workers[1 - index]
        other.echo(await other.one(), took_ns=SHORT_NS)
        workers[index].echo(given, took_ns=SHORT_NS)
        assert await model.values(*requests) == [[1], [2]]
        await eventually(lambda: limiter._free["R"] == 2)
