from __future__ import annotations

import asyncio

import numpy as np

from plugins.workers.tests.fake_worker import (
    Recorder,
    eventually,
    floats,
    on_loop,
    tensor,
    worker_of,
)
from tritonpy_ipc import Kind
from tritonpy_ipc.windows import MAX_RESPONSES
from tritonpy_testing.toy_engine import ToyEngine
from tritonpy_types import Batch, InferResponse
from tritonpy_types.errors import Code

FINAL, EMPTY = 1, 2
FAILED = "Model {0} - Error when running inference: {1}"


@on_loop
async def test_a_stream_arrives_in_order_and_ends_with_an_empty_response():
    with ToyEngine() as engine:
        async with worker_of(engine) as worker:
            worker.call(1, [tensor(np.int32([3]))], model="repeat", decoupled=True)
            answers = [await worker.answer() for _ in range(4)]
    assert [words for words, _, _ in answers] == [(1, 0), (1, 0), (1, 0), (1, FINAL | EMPTY)]
    assert [[row["OUT"].tolist() for row in rows] for _, rows, _ in answers] == [
        [[0]],
        [[1]],
        [[2]],
        [],
    ]


@on_loop
async def test_a_stream_of_a_normal_model_has_one_final_response():
    with ToyEngine() as engine:
        async with worker_of(engine) as worker:
            worker.call(1, [floats(4)], model="identity", decoupled=True)
            words, (outputs,), _ = await worker.answer()
            assert (words, outputs["OUT"].tolist()) == ((1, FINAL), [4.0])


@on_loop
async def test_a_decoupled_model_refuses_a_caller_that_expects_one_response():
    with ToyEngine() as engine:
        async with worker_of(engine) as worker:
            worker.call(1, [tensor(np.int32([3]))], model="repeat")
            text = (
                "Model repeat is using the decoupled. The current BLS request call doesn't support models using the decoupled "
                "transaction policy. Please use 'decoupled=True' argument to the 'exec' or 'async_exec' calls for decoupled models.'"
            )
            assert await worker.answer() == (
                (1, FINAL),
                [],
                {"error": [Code.INTERNAL, FAILED.format("repeat", text)]},
            )


async def full_stream(engine, worker, number=1, value=0.0):
    """Call a decoupled model and let it respond until it is blocked."""
    worker.call(number, [floats(1)], model="repeat", decoupled=True)
    await eventually(lambda: len(engine.requests) >= number)
    call = engine.requests[number - 1]
    call.batch = Batch([call])
    return call, fill(call, value)


def fill(call, value=0.0):
    sent = 0
    while call.sink.ready(call):
        call.respond(InferResponse([floats(value)], final=False))
        sent += 1
    return sent


@on_loop
async def test_a_producer_is_blocked_until_the_worker_returns_credit():
    engine = Recorder()
    async with worker_of(engine) as worker:
        call, sent = await full_stream(engine, worker)
        assert sent == MAX_RESPONSES
        for _ in range(sent):
            await worker.answer()  # read but not consumed
        assert not call.sink.ready(call)
        room = asyncio.Event()
        call.sink.when_ready(call, room.set)
        worker.send(Kind.CALL_CONSUMED, [1, sent // 2])
        await room.wait()
        assert fill(call) == sent // 2


@on_loop
async def test_a_cancelled_blocked_producer_resumes():
    engine = Recorder()
    async with worker_of(engine) as worker:
        call, _ = await full_stream(engine, worker)
        room = asyncio.Event()
        call.sink.when_ready(call, room.set)
        worker.send(Kind.CALL_CANCEL, [1])
        await room.wait()
        assert call.cancelled


@on_loop
async def test_an_abandoned_stream_runs_to_its_end():
    engine = Recorder()
    async with worker_of(engine) as worker:
        call, sent = await full_stream(engine, worker)
        for _ in range(sent):
            await worker.answer()
        worker.send(Kind.CALL_ABANDONED, [1])
        await eventually(lambda: call.sink.ready(call))
        for _ in range(2 * MAX_RESPONSES):
            call.respond(InferResponse([floats(1)], final=False))
        call.respond(InferResponse(()))
        worker.call(2, [floats(1)], model="identity")
        await eventually(lambda: len(engine.requests) == 2)
        engine.requests[1].respond(InferResponse([floats(7)]))
        assert (await worker.answer())[0] == (2, FINAL)
        assert call.tag.unconsumed == sent  # later responses are not stored


@on_loop
async def test_an_abandoned_stream_is_cancelled_with_its_worker():
    engine = Recorder()
    async with worker_of(engine) as worker:
        call, _ = await full_stream(engine, worker)
        worker.send(Kind.CALL_ABANDONED, [1])
        await eventually(lambda: call.sink.ready(call))
        assert not call.cancelled
    assert call.cancelled


@on_loop
async def test_alternating_streams_of_one_model_do_not_deadlock():
    engine = Recorder()
    async with worker_of(engine) as worker:
        call, _ = await full_stream(engine, worker)
        worker.call(2, [floats(1)], model="repeat", decoupled=True)
        worker.send(Kind.CALL_AWAITED, [2])
        await eventually(lambda: call.sink.ready(call))
        fill(call)
        room = asyncio.Event()
        # The other call still waits for the instance of this one.
        call.sink.when_ready(call, room.set)
        await room.wait()
        worker.send(Kind.CALL_CONSUMED, [1, 2 * MAX_RESPONSES])
        await eventually(lambda: call.tag.unconsumed == 0)


@on_loop
async def test_outputs_without_shared_memory_fail_the_call(monkeypatch):
    def refuse(*_arguments):
        raise OSError("too many open files")

    engine = Recorder()
    async with worker_of(engine) as worker:
        worker.call(1, [floats(1)], model="repeat", decoupled=True)
        await eventually(lambda: engine.requests)
        (call,) = engine.requests
        monkeypatch.setattr("tritonpy_ipc.memory_file.create", refuse)
        call.respond(InferResponse([tensor(np.zeros(100_000, np.float32))], final=False))
        text = "no shared memory for the outputs of model 'repeat': too many open files"
        assert await worker.answer() == ((1, FINAL), [], {"error": [1, text]})
        assert call.cancelled
