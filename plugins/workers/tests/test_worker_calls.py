"""Handling of workers that call other models or request more."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress

import numpy as np

from plugins.workers.tests.fake_worker import eventually, on_loop
from plugins.workers.tests.scripted_worker import FINAL, outputs
from plugins.workers.tests.worker_model import worker_model
from tritonpy_ipc import Kind
from tritonpy_testing.recording_sink import WAIT_S
from tritonpy_types import Tensor
from tritonpy_types.errors import Code

SHORT_NS = 1_000
FLOATS = [Tensor.from_numpy("IN", np.float32([1]))]


async def next_iteration():
    """Run all pending callbacks of the loop."""
    for _ in range(5):
        await asyncio.sleep(0)


def call(worker, given, number=1):
    """Call another model during an execution."""
    worker.send(
        Kind.CALL,
        [number, given.id, given.numbers[0] + 1],
        rows=[FLOATS],
        requested=[None],
        extras={"model": "identity"},
    )


def request_more(worker, count, query=1):
    """Request additional requests for the running execution."""
    worker.send(Kind.QUERY, [query], extras={"verb": "take_more", "arguments": {"count": count}})


async def reply(worker):
    return (await worker.receive(Kind.QUERY_RESULT)).extras


async def learn_that_executions_are_short(model, workers):
    requests = [model.ask(0) for _ in workers]
    for worker in workers:
        worker.echo(await worker.one(), took_ns=SHORT_NS)
    await model.values(*requests)


@on_loop
async def test_no_request_is_queued_behind_an_execution_that_waits_for_a_call():
    async with worker_model() as model:
        (worker,) = await model.start()
        await learn_that_executions_are_short(model, [worker])
        with model.engine.hold():
            first = model.ask(1)
            given = await worker.one()
            call(worker, given)
            await asyncio.to_thread(model.engine.wait_for_requests, 1)
            second = model.ask(2)
            await next_iteration()
            assert model.model.waiting == 1
        await worker.receive(Kind.CALL_RESPONSE)
        worker.echo(given, took_ns=SHORT_NS)
        worker.echo(await worker.one(), took_ns=SHORT_NS)
        assert await model.values(first, second) == [[1], [2]]


@on_loop
async def test_an_instance_that_waits_for_a_call_leaves_its_wakeup_to_others():
    async with worker_model(instances=2) as model:
        workers = await model.start()
        await learn_that_executions_are_short(model, workers)
        with model.engine.hold():
            first = model.ask(1)
            caller = await the_one_with_a_frame(workers)
            (other,) = [worker for worker in workers if worker is not caller]
            given = await caller.one()
            second = model.ask(2)
            busy = await other.one()
            call(caller, given)
            await asyncio.to_thread(model.engine.wait_for_requests, 1)
            other.echo(busy, took_ns=SHORT_NS)
            assert await model.values(second) == [[2]]
            third = model.ask(3)
            other.echo(await other.one(), took_ns=SHORT_NS)
            assert await model.values(third) == [[3]]
        await caller.receive(Kind.CALL_RESPONSE)
        caller.echo(given, took_ns=SHORT_NS)
        assert await model.values(first) == [[1]]


async def the_one_with_a_frame(workers):
    while True:
        for worker in workers:
            with suppress(BlockingIOError):
                worker.frames += worker.endpoint.feed(worker.socket.recv(1 << 18))
                return worker
        await asyncio.sleep(0)


@on_loop
async def test_a_cancelled_request_cancels_its_calls():
    async with worker_model() as model:
        (worker,) = await model.start()
        with model.engine.hold():
            request = model.ask(1)
            given = await worker.one()
            call(worker, given)
            await asyncio.to_thread(model.engine.wait_for_requests, 1)
            request.cancel()
            kinds = [await worker.receive(Kind.CANCEL, Kind.CALL_RESPONSE) for _ in range(2)]
            message = {frame.kind: frame for frame in kinds}
            assert message[Kind.CANCEL].words == (given.numbers[0],)
            assert message[Kind.CALL_RESPONSE].extras["error"][0] == Code.CANCELLED
        worker.echo(given)
        await model.answers(request)


@on_loop
async def test_a_worker_that_requests_more_gets_waiting_requests_and_a_number():
    async with worker_model() as model:
        (worker,) = await model.start()
        requests = [model.ask(number) for number in range(3)]
        first = await worker.one()
        request_more(worker, 5)
        joined = await worker.one()
        assert joined.extras["joins"]
        assert joined.rows[0][0].data.tolist() == [[1]]
        assert await reply(worker) == {"value": joined.id}
        request_more(worker, 5)
        last = await worker.one()
        assert await reply(worker) == {"value": last.id}
        request_more(worker, 5)
        assert await reply(worker) == {"value": None}
        worker.echo(first, joined, last)
        assert await model.values(*requests) == [[0], [1], [2]]


@on_loop
async def test_invalid_additional_requests_fail_and_do_not_join():
    broken = Tensor("IN", "BYTES", (1, 1), np.full(4 << 20, 255, np.uint8))
    async with worker_model(datatype="TYPE_STRING") as model:
        (worker,) = await model.start()
        first = model.send(np.array([[b"x"]], object))
        given = await worker.one()
        second = model.send(np.array([[b"y"]], object))
        second.inputs["IN"] = broken
        second.unchecked_strings = True
        request_more(worker, 1)
        assert await reply(worker) == {"value": None}
        assert (await model.errors(second)) != [""]
        worker.send_responses([(given.numbers[0], FINAL, outputs(given.rows[0]))], [given])
        await model.answers(first)


@on_loop
async def test_additional_requests_without_shared_memory_fail(monkeypatch):
    def refuse(*_arguments):
        raise OSError("too many open files")

    async with worker_model() as model:
        (worker,) = await model.start()
        first = model.ask(1)
        given = await worker.one()
        second = model.send(np.zeros((1, 100_000), np.int32))
        with monkeypatch.context() as patch:
            patch.setattr("tritonpy_ipc.memory_file.create", refuse)
            request_more(worker, 1)
            assert await reply(worker) == {"value": None}
        assert await model.errors(second) == ["OSError: too many open files"]
        worker.echo(given)
        assert await model.values(first) == [[1]]


@on_loop
async def test_additional_requests_for_a_dying_worker_fail(monkeypatch):
    async with worker_model() as model:
        (worker,) = await model.start()
        first = model.ask(1)
        await worker.one()
        entered, released = asyncio.Event(), threading.Event()
        loop = asyncio.get_running_loop()
        second = model.ask(2)
        second.unchecked_strings = True

        def admit(batch):
            loop.call_soon_threadsafe(entered.set)
            return released.wait(WAIT_S)

        for instance in model.runner._instances.values():
            monkeypatch.setattr(
                instance,
                "_callbacks",
                type(instance._callbacks)(
                    admit, instance._callbacks.drop, instance._callbacks.fail
                ),
            )
        request_more(worker, 1)
        await entered.wait()
        worker.exit(3)
        await eventually(lambda: first.finished)
        assert await model.errors(second) == ["the worker of the model has ended"]
        released.set()
        next_worker = await model.launcher.next()
        await next_worker.started()
