from __future__ import annotations

import asyncio
from select import select

import numpy as np
import pytest

from plugins.workers.tests.fake_worker import eventually, on_loop
from plugins.workers.tests.scripted_worker import EMPTY, FINAL, outputs
from plugins.workers.tests.worker_model import (
    LONG_NS,
    SHORT_NS,
    Batching,
    next_iteration,
    worker_model,
)
from tritonpy_ipc import Kind
from tritonpy_workers import worker as worker_module


@on_loop
async def test_a_request_is_executed_and_gets_a_response():
    async with worker_model() as model:
        (worker,) = await model.start()
        request = model.ask(1, 2)
        worker.echo(await worker.one())
        assert await model.values(request) == [[1, 2]]


@on_loop
async def test_large_tensors_are_sent_in_shared_memory():
    large = np.arange(100_000, dtype=np.int32).reshape(1, -1)
    async with worker_model() as model:
        (worker,) = await model.start()
        request = model.send(large)
        worker.echo(await worker.one())
        (values,) = await model.values(request)
        assert values == large.ravel().tolist()


@on_loop
async def test_the_first_executions_are_sent_one_at_a_time():
    async with worker_model() as model:
        (worker,) = await model.start()
        requests = [model.ask(number) for number in range(3)]
        for number in range(3):
            given = await worker.one()
            assert given.rows[0][0].data.tolist() == [[number]]
            await next_iteration()
            assert model.model.waiting == 2 - number
            worker.echo(given, took_ns=LONG_NS)
        assert await model.values(*requests) == [[0], [1], [2]]


@on_loop
async def test_short_executions_are_prefetched_if_batches_cannot_grow():
    async with worker_model() as model:
        (worker,) = await model.start()
        requests = [model.ask(0)]
        worker.echo(await worker.one(), took_ns=SHORT_NS)
        await model.values(*requests)
        requests += [model.ask(number) for number in range(40)]
        given = await worker.given()
        assert len(given) == 32
        worker.echo(*given, took_ns=SHORT_NS)
        worker.echo(*await worker.given())
        assert await model.values(*requests) == [[0], *[[number] for number in range(40)]]


async def make_fast(model, workers):
    """Let short executions of every worker be recorded, so that it prefetches."""
    for _ in workers:
        requested = [model.ask(0) for _ in workers]
        for worker in workers:
            worker.echo(await worker.one(), took_ns=SHORT_NS)
        await model.values(*requested)


@on_loop
@pytest.mark.parametrize(("requested", "shares"), [(2, [1, 1]), (3, [1, 2]), (8, [4, 4])])
async def test_no_request_is_prefetched_that_an_idle_instance_could_begin(requested, shares):
    async with worker_model(instances=2) as model:
        workers = await model.start()
        await make_fast(model, workers)
        requests = [model.ask(number) for number in range(requested)]
        given = [await worker.given() for worker in workers]
        assert sorted(map(len, given)) == shares
        for worker, executions in zip(workers, given, strict=True):
            worker.echo(*executions, took_ns=SHORT_NS)
        assert await model.values(*requests) == [[number] for number in range(requested)]


@on_loop
async def test_requests_are_prefetched_while_all_instances_execute():
    async with worker_model(instances=2) as model:
        workers = await model.start()
        await make_fast(model, workers)
        requests = [model.ask(number) for number in range(2)]
        given = [await worker.one() for worker in workers]
        requests += [model.ask(number) for number in range(2, 5)]
        await eventually(lambda: model.model.waiting == 0)
        assert not any(request.finished for request in requests)
        (early,) = [worker for worker in workers if select([worker.socket], [], [], 0)[0]]
        early.echo(*await early.given())
        for worker, first in zip(workers, given, strict=True):
            worker.echo(first)
        assert await model.values(*requests) == [[number] for number in range(5)]


@on_loop
async def test_growing_batches_are_never_prefetched():
    async with worker_model(scheduler=Batching) as model:
        (worker,) = await model.start()
        first = model.ask(0)
        given = await worker.one()
        rest = [model.ask(number) for number in range(1, 4)]
        await next_iteration()
        worker.echo(given, took_ns=SHORT_NS)
        given = await worker.one()
        assert len(given.numbers) == 3
        late = model.ask(9)
        await next_iteration()
        worker.echo(given, took_ns=SHORT_NS)
        worker.echo(await worker.one())
        assert await model.values(first, *rest, late) == [[0], [1], [2], [3], [9]]


@on_loop
async def test_responses_may_come_in_any_order_and_from_several_executions():
    async with worker_model() as model:
        (worker,) = await model.start()
        warm = model.ask(0)
        worker.echo(await worker.one(), took_ns=SHORT_NS)
        await model.values(warm)
        requests = [model.ask(number) for number in range(4)]
        given = await worker.given()
        pairs = [
            (number, row)
            for each in given
            for number, row in zip(each.numbers, each.rows, strict=True)
        ]
        worker.send_responses(
            [(number, FINAL, outputs(row)) for number, row in reversed(pairs[2:])], given[2:]
        )
        worker.send_responses(
            [(number, FINAL, outputs(row)) for number, row in reversed(pairs[:2])], given[:2]
        )
        assert await model.values(*requests) == [[0], [1], [2], [3]]


@on_loop
async def test_a_finished_execution_frees_its_place_before_its_response():
    async with worker_model(decoupled=True) as model:
        (worker,) = await model.start()
        slow, quick = (model.ask(number, accepts_decoupled=True) for number in range(2))
        held = await worker.one()
        worker.send_responses([(held.numbers[0], 0, outputs(held.rows[0]))], [held])
        worker.echo(await worker.one())
        assert await model.values(quick) == [[1]]
        assert not slow.finished
        worker.send_responses(
            [(held.numbers[0], 0, outputs(held.rows[0])), (held.numbers[0], FINAL | EMPTY, [])]
        )
        (end,) = await model.answers(slow)
        assert end.empty
        assert len(model.recorder.responses(slow)) == 3


@on_loop
async def test_a_response_after_the_final_one_is_dropped():
    async with worker_model(decoupled=True) as model:
        (worker,) = await model.start()
        request = model.ask(1, accepts_decoupled=True)
        given = await worker.one()
        worker.echo(given)
        await model.values(request)
        worker.send_responses(
            [(given.numbers[0], 0, outputs(given.rows[0])), (given.numbers[0], FINAL | EMPTY, [])]
        )
        other = model.ask(2, accepts_decoupled=True)
        worker.echo(await worker.one())
        assert await model.values(other) == [[2]]


@on_loop
async def test_two_instances_share_the_requests():
    async with worker_model(instances=2) as model:
        one, two = await model.start()
        first, second, third = (model.ask(number) for number in range(3))
        given = [await one.one(), await two.one()]
        await next_iteration()
        assert model.model.waiting == 1
        two.echo(given[1])
        two.echo(await two.one())
        one.echo(given[0])
        assert sorted(await model.values(first, second, third)) == [[0], [1], [2]]


@on_loop
async def test_a_request_goes_to_the_idle_instance():
    async with worker_model(instances=2) as model:
        busy, free = await model.start()
        blocked = model.ask(0)
        held = await busy.one()
        for number in range(1, 6):
            request = model.ask(number)
            free.echo(await free.one(), took_ns=SHORT_NS)
            assert await model.values(request) == [[number]]
        busy.echo(held)
        await model.values(blocked)


@on_loop
async def test_a_worker_is_stopped_after_its_last_response():
    async with worker_model() as model:
        (worker,) = await model.start()
        request = model.ask(1)
        given = await worker.one()
        closing = model.unload()
        await next_iteration()
        assert worker.frames == []
        worker.echo(given)
        assert await model.values(request) == [[1]]
        await worker.stop()
        await closing
        assert not worker.killed


@on_loop
async def test_a_worker_that_does_not_stop_is_killed(monkeypatch):
    monkeypatch.setattr(worker_module, "FINALIZE_LIMIT_S", 0.001)
    async with worker_model() as model:
        (worker,) = await model.start()
        await model.unload()
        assert worker.killed


@on_loop
async def test_a_running_request_that_is_cancelled_is_cancelled_at_the_worker():
    async with worker_model() as model:
        (worker,) = await model.start()
        request = model.ask(1)
        given = await worker.one()
        await asyncio.to_thread(request.cancel)
        cancel = await worker.receive(Kind.CANCEL)
        assert list(cancel.words) == given.numbers
        worker.echo(given)
        assert await model.values(request) == [[1]]


@on_loop
async def test_a_waiting_request_that_is_cancelled_never_reaches_the_worker():
    async with worker_model() as model:
        (worker,) = await model.start()
        first, second = model.ask(1), model.ask(2)
        given = await worker.one()
        second.cancel()
        assert await model.errors(second) == ["Request cancelled"]
        worker.echo(given)
        await model.values(first)


@on_loop
async def test_concurrent_stops_wait_until_the_worker_is_gone():
    async with worker_model() as model:
        (worker,) = await model.start()
        (instance,) = model.runner._instances.values()
        stopping = [asyncio.ensure_future(instance.stop()) for _ in range(2)]
        await worker.receive(Kind.STOP)
        await next_iteration()
        assert [each.done() for each in stopping] == [False, False]
        worker.exit(0)
        await asyncio.gather(*stopping)
