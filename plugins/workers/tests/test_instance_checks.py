from __future__ import annotations

import threading

import numpy as np

from core.tests.toys.limiter import ResourceLimiter
from plugins.workers.tests.fake_worker import eventually, on_loop
from plugins.workers.tests.worker_model import (
    LONG_NS,
    NEEDS_ONE,
    Batching,
    next_iteration,
    worker_model,
)
from tritonpy_ipc import Kind
from tritonpy_types.errors import Internal, InvalidArgument


def strings(count):
    return np.array([[b"x" * 10] * count], np.object_)


@on_loop
async def test_large_strings_are_checked_before_they_are_sent():
    async with worker_model(datatype="TYPE_STRING") as model:
        (worker,) = await model.start()
        good, bad = model.send(strings(20_000)), model.send(strings(20_000))
        assert good.unchecked_strings
        tensor = bad.inputs["IN"]
        tensor.data = tensor.data.copy()
        tensor.data[:4] = 255
        worker.echo(await worker.one(), took_ns=LONG_NS)
        assert (await model.answers(good))[0].outputs[0].strings() == [b"x" * 10] * 20_000
        (answer,) = await model.answers(bad)
        assert isinstance(answer.error, InvalidArgument)
        other = model.send(strings(1))
        worker.echo(await worker.one())
        assert (await model.answers(other))[0].outputs[0].strings() == [b"x" * 10]


@on_loop
async def test_a_batch_being_checked_counts_as_held_and_keeps_the_lease():
    limiter = ResourceLimiter({"R": 1})
    go = threading.Event()
    async with worker_model(datatype="TYPE_STRING", limiter=limiter, group=NEEDS_ONE) as model:
        (worker,) = await model.start()
        admit = model.model.callbacks.admit
        object.__setattr__(
            model.runner._instances[0]._callbacks,
            "admit",
            lambda batch: go.wait(10) and admit(batch),
        )
        large, small = model.send(strings(20_000)), model.send(strings(1))
        await next_iteration()
        assert (limiter._free["R"], model.model.waiting) == (0, 1)
        go.set()
        worker.echo(await worker.one())
        worker.echo(await worker.one())
        await model.answers(large, small)


@on_loop
async def test_a_request_that_is_cancelled_while_it_is_checked_is_cancelled_at_the_worker():
    go = threading.Event()
    async with worker_model(datatype="TYPE_STRING") as model:
        (worker,) = await model.start()
        admit = model.model.callbacks.admit
        object.__setattr__(
            model.runner._instances[0]._callbacks,
            "admit",
            lambda batch: go.wait(10) and admit(batch),
        )
        request = model.send(strings(20_000))
        await next_iteration()
        request.cancel()
        await next_iteration()
        go.set()
        given = await worker.one()
        assert list((await worker.receive(Kind.CANCEL)).words) == given.numbers
        worker.echo(given)
        await model.answers(request)


@on_loop
async def test_a_batch_whose_worker_dies_while_it_is_checked_is_executed_by_the_next():
    go = threading.Event()
    async with worker_model(datatype="TYPE_STRING") as model:
        (worker,) = await model.start()
        admit = model.model.callbacks.admit
        object.__setattr__(
            model.runner._instances[0]._callbacks,
            "admit",
            lambda batch: go.wait(10) and admit(batch),
        )
        request, waiting = model.send(strings(20_000)), model.send(strings(1))
        await next_iteration()
        worker.exit(1)
        again = await model.launcher.next()
        await again.started()
        await eventually(model.runner.alive)
        go.set()
        for _ in range(2):
            again.echo(await again.one())
        assert await model.errors(request, waiting) == ["", ""]


@on_loop
async def test_a_check_that_raises_fails_its_batch():
    async with worker_model(datatype="TYPE_STRING") as model:
        (worker,) = await model.start()

        def broken(_batch):
            raise Internal("the check is broken")

        object.__setattr__(model.runner._instances[0]._callbacks, "admit", broken)
        assert await model.errors(model.send(strings(20_000))) == ["the check is broken"]
        small = model.send(strings(1))
        worker.echo(await worker.one())
        await model.answers(small)


@on_loop
async def test_a_worker_that_checks_strings_gets_them_immediately_with_their_requests():
    async with worker_model(datatype="TYPE_STRING", scheduler=Batching) as model:
        (worker,) = await model.start(checks_strings=True)
        first = model.send(strings(1))
        given = await worker.one()
        assert "unchecked" not in given.extras
        waiting = [model.send(strings(1)), model.send(strings(20_000))]
        worker.echo(given)
        given = await worker.one()
        assert given.extras["unchecked"] == [1]
        worker.echo(given)
        assert all(answer.error is None for answer in await model.answers(first, *waiting))
