from __future__ import annotations

import asyncio
import gc
from types import SimpleNamespace

import numpy as np
import pytest

from core.tests.runners.workers.fake_worker import (
    FakeWorker,
    Recorder,
    eventually,
    floats,
    model_context,
    neighbours_of,
    on_loop,
    tensor,
    worker_of,
)
from tritonpy.api.backend import InstanceContext
from tritonpy.errors import Code, Unavailable
from tritonpy.ipc import Kind
from tritonpy.runners.slot import Slot
from tritonpy.testing.parse import model_config
from tritonpy.testing.toy_engine import ToyEngine
from tritonpy.testing.toy_model import ToyModel, toy_models
from tritonpy.types import Batch, InferRequest, InferResponse, SequenceInfo

FINAL, EMPTY = 1, 2
FAILED = "Model {0} - Error when running inference: {1}"


@on_loop
async def test_a_call_is_answered_with_the_outputs_of_the_model():
    with ToyEngine() as engine:
        async with worker_of(engine) as worker:
            for number, value in enumerate([1.5, 2.5]):
                worker.call(number, [floats(value)], model="identity")
            for number, value in enumerate([1.5, 2.5]):
                (words, (outputs,), said) = await worker.answer()
                assert (words, outputs["OUT"].tolist(), said) == ((number, FINAL), [value], {})


@on_loop
async def test_large_tensors_and_strings_go_both_ways():
    large = np.arange(100_000, dtype=np.float32)
    with ToyEngine() as engine:
        async with worker_of(engine) as worker:
            worker.call(1, [tensor(large)], model="identity")
            _, (outputs,), _ = await worker.answer()
            assert np.array_equal(outputs["OUT"], large)
            worker.call(2, [tensor(np.array([b"one", b"", "zwölf".encode()], object))], model="text")
            _, (outputs,), _ = await worker.answer()
            assert outputs["OUT"].tolist() == [b"one", b"", "zwölf".encode()]


@on_loop
async def test_everything_that_a_call_says_reaches_the_model():
    engine = Recorder()
    async with worker_of(engine) as worker:
        parent = InferRequest(
            "caller", {}, None, principal="somebody", headers={"h": "1"}, deadline_ns=5, trace="context"
        )
        worker.execute(parent)
        worker.call(
            9, [floats(1), tensor(np.int32([2]), "OTHER")], (1, 1), wants=("OUT", "MORE"), model="identity", version=1, id="abc",
            parameters={"a": 1, "b": "x", "c": True, "d": 0.5}, sequence=[7, True, False], timeout_us=11, priority=2,
            decoupled=True, trace=True,
        )  # fmt: skip
        await eventually(lambda: engine.requests)
    (call,) = engine.requests
    assert (call.model_name, call.model_version, call.id, call.timeout_us, call.priority) == (
        "identity",
        1,
        "abc",
        11,
        2,
    )
    assert {name: each.numpy().tolist() for name, each in call.inputs.items()} == {"IN": [1.0], "OTHER": [2]}
    assert list(call.outputs) == ["OUT", "MORE"]
    assert dict(call.parameters) == {"a": 1, "b": "x", "c": True, "d": 0.5}
    assert call.sequence == SequenceInfo(7, start=True)
    assert call.accepts_decoupled
    assert call.parent is parent
    assert (call.principal, call.headers, call.deadline_ns, call.trace) == ("somebody", {"h": "1"}, 5, "context")


@on_loop
async def test_what_a_call_does_not_say_is_left_at_its_default():
    engine = Recorder()
    async with worker_of(engine) as worker:
        worker.execute(InferRequest("caller", {}, None, trace="context"))
        worker.call(9, [floats(1)], (1, 1), model="identity", sequence=[0, True, True])
        await eventually(lambda: engine.requests)
    (call,) = engine.requests
    plain = InferRequest("identity", {}, None)
    for field in (
        "model_version",
        "id",
        "outputs",
        "parameters",
        "priority",
        "timeout_us",
        "sequence",
        "accepts_decoupled",
        "trace",
    ):
        assert getattr(call, field) == getattr(plain, field), field


@on_loop
async def test_who_calls_is_the_request_of_an_execution_that_has_one():
    engine = Recorder()
    alone, first, second, over = (InferRequest("caller", {}, None) for _ in range(4))
    async with worker_of(engine) as worker:
        worker.execute(alone)
        worker.execute(first, second)
        worker.execute(over)
        worker.done(3)
        for number, words in enumerate([(1, 0), (2, 0), (2, 3), (0, 0), (0, 3), (3, 0)]):
            worker.call(number, [floats(1)], words, model="identity")
        await eventually(lambda: len(engine.requests) == 6)
    parents = [call.parent for call in engine.requests]
    several = parents.pop(1)
    assert parents == [alone, second, None, second, None]
    # Of several requests none in particular calls: one that nobody sent stands for the execution, which waits.
    assert several is not None
    assert several not in {first, second}
    assert several.batch is first.batch is second.batch


@pytest.mark.parametrize("said", [{"model": "nobody"}, {"model": "identity", "version": 7}, {"model": "unloaded"}])
@on_loop
async def test_a_model_that_does_not_serve_is_not_ready(said):
    models = [*toy_models(), ToyModel(model_config('name: "unloaded"'), lambda _: [])]
    with ToyEngine(models) as engine:
        engine.unload_model("unloaded")
        async with worker_of(engine) as worker:
            worker.call(1, [floats(1)], **said)
            text = f"Failed for execute the inference request. Model '{said['model']}' is not ready."
            assert await worker.answer() == ((1, FINAL), [], {"error": [1, FAILED.format(said["model"], text)]})


@on_loop
async def test_what_the_model_refuses_is_said_in_its_words():
    with ToyEngine() as engine:
        async with worker_of(engine) as worker:
            worker.call(1, [tensor(np.float32([1]), "WRONG")], model="identity")
            text = "expected the inputs ['IN'], got ['WRONG']"
            assert await worker.answer() == ((1, FINAL), [], {"error": [1, FAILED.format("identity", text)]})


@on_loop
async def test_an_input_that_is_given_twice_is_refused():
    with ToyEngine() as engine:
        async with worker_of(engine) as worker:
            worker.call(1, [floats(1), floats(1)], model="identity", id="abc")
            text = "[request id: abc] input 'IN' already exists in request"
            assert await worker.answer() == ((1, FINAL), [], {"error": [1, FAILED.format("identity", text)]})


@on_loop
async def test_what_the_model_raises_is_the_answer_with_its_code():
    with ToyEngine() as engine:
        async with worker_of(engine) as worker:
            worker.call(1, [floats(1)], model="failing")
            assert await worker.answer() == ((1, FINAL), [], {"error": [1, "this model always fails"]})


@on_loop
async def test_an_engine_that_fails_unexpectedly_fails_the_call_alone(caplog):
    class Broken(ToyEngine):
        def infer(self, request):
            raise ZeroDivisionError("secret")

    async with worker_of(Broken()) as worker:
        worker.call(1, [floats(1)], model="identity")
        _, _, said = await worker.answer()
        assert "unexpected error in the server, see incident" in said["error"][1]
        assert "secret" not in said["error"][1]
        worker.call(1, [floats(1)], model="identity")
        await worker.answer()
    assert "ZeroDivisionError" in caplog.text


@on_loop
async def test_parameters_of_an_answer_reach_the_caller():
    engine = Recorder()
    async with worker_of(engine) as worker:
        worker.call(1, [floats(1)], model="identity")
        await eventually(lambda: engine.requests)
        engine.requests[0].respond(InferResponse([floats(2)], parameters={"p": 1, "q": "x"}))
        assert (await worker.answer())[2] == {"parameters": {"p": 1, "q": "x"}}


@on_loop
async def test_a_call_that_is_cancelled_is_answered_as_cancelled():
    with ToyEngine() as engine, engine.hold():
        async with worker_of(engine) as worker:
            worker.call(1, [floats(1)], model="identity")
            worker.call(2, [floats(1)], model="identity")
            await asyncio.to_thread(engine.wait_for_open, 2)
            worker.send(Kind.CALL_CANCEL, [2])
            assert await worker.answer() == ((2, FINAL), [], {"error": [Code.CANCELLED, "the request was cancelled"]})
            worker.send(Kind.CALL_CANCEL, [2])  # it may cross the answer
            assert [each.tag.number for each in engine.wait_for_open(1)] == [1]


@on_loop
async def test_the_end_of_a_request_ends_what_it_called():
    engine = Recorder()
    one, other = InferRequest("caller", {}, None), InferRequest("caller", {}, None)
    async with worker_of(engine) as worker:
        worker.execute(one, other)
        for number, request in enumerate([1, 2, 1]):
            worker.call(number, [floats(1)], (1, request), model="identity")
        await eventually(lambda: len(engine.requests) == 3)
        one.cancelled = True
        worker.conversation.cancelled(one)
        assert [call.cancelled for call in engine.requests] == [True, False, True]
        worker.call(3, [floats(1)], (1, 1), model="identity")
        await eventually(lambda: len(engine.requests) == 4)
        assert engine.requests[3].cancelled, "called for a request that had been cancelled"


@on_loop
async def test_the_end_of_a_worker_ends_its_calls_and_their_answers_are_nobodys():
    engine = Recorder()
    async with worker_of(engine) as worker:
        for number in range(3):
            worker.call(number, [floats(1)], model="identity")
        await eventually(lambda: len(engine.requests) == 3)
    assert all(call.cancelled for call in engine.requests)
    await asyncio.sleep(0)


CALLER = 'name: "caller" instance_group { count: 1 kind: KIND_CPU }'


@on_loop
async def test_a_loop_that_stood_still_ends_with_its_worker():
    engine = Recorder()
    engine._models["caller"] = ToyModel(model_config(CALLER), lambda _: [])
    neighbours = neighbours_of(engine)
    worker = FakeWorker(model_context(engine), neighbours)
    worker.model.config = engine.model_config("caller")
    worker.execute(InferRequest("caller", {}, None))
    worker.done(1)
    worker.call(1, [floats(1)], (0, 1), model="identity", stops_loop=True)
    await eventually(lambda: engine.requests)
    (called,) = engine.requests
    called.batch = Batch(
        [called],
        model=SimpleNamespace(config=engine.model_config("identity")),
        instance=Slot(InstanceContext("identity_0", "CPU", 0, 0)),
    )
    called.batch.executing = True
    back = InferRequest("caller", {}, None, parent=called)
    with pytest.raises(Unavailable):
        neighbours.graph.admit(back, called.batch)
    worker.close()
    neighbours.graph.admit(back, called.batch)  # the next worker answers


@pytest.mark.parametrize("request_number", [0, 1])
@on_loop
async def test_a_loop_that_stands_still_cannot_answer_itself_though_all_of_its_requests_are_answered(request_number):
    engine = Recorder()
    engine._models["caller"] = ToyModel(model_config(CALLER), lambda _: [])
    async with worker_of(engine) as worker:
        worker.model.config = engine.model_config("caller")
        worker.execute(InferRequest("caller", {}, None))
        worker.done(1)
        worker.executions.open.clear()
        worker.call(1, [floats(1)], (0, request_number), model="caller", stops_loop=True)
        _, _, said = await worker.answer()
        assert "await 'async_exec'" in said["error"][1]


@on_loop
async def test_inputs_in_shared_memory_are_borrowed_until_the_answer():
    engine = Recorder()
    async with worker_of(engine) as worker:
        worker.call(1, [tensor(np.zeros(100_000, np.float32))], model="identity")
        await eventually(lambda: engine.requests)
        assert worker.endpoint._lender._lent
        engine.requests.pop().respond(InferResponse(()))
        await worker.answer()
        gc.collect()
        worker.call(2, [floats(1)], model="identity")
        await eventually(lambda: engine.requests)
        engine.requests[0].respond(InferResponse(()))
        await worker.answer()
        assert not worker.endpoint._lender._lent


@on_loop
async def test_a_call_that_would_never_be_answered_is_refused_and_leaves_no_trace():
    engine = Recorder()
    engine._models["caller"] = ToyModel(model_config(CALLER), lambda _: [])
    async with worker_of(engine) as worker:
        worker.model.config = engine.model_config("caller")
        worker.execute(InferRequest("caller", {}, None))
        worker.call(1, [floats(1)], (1, 1), model="caller")
        _, _, said = await worker.answer()
        assert said["error"][1].startswith(
            FAILED.format("caller", "the call would wait for ever: instance 'caller_0_0' waits for model 'caller'")
        )
        assert engine.requests == []
        worker.call(2, [floats(1)], (0, 1), model="caller")  # nobody's instance waits
        await eventually(lambda: engine.requests)


@on_loop
async def test_a_worker_whose_executions_call_gets_no_execution_ahead():
    engine = Recorder()
    async with worker_of(engine) as worker:
        worker.execute(InferRequest("caller", {}, None))
        worker.call(1, [floats(1)], (0, 1), model="identity")
        await eventually(lambda: engine.requests)
        assert not worker.executions.calls
        worker.call(2, [floats(1)], (1, 1), model="identity")
        await eventually(lambda: len(engine.requests) == 2)
        assert worker.executions.calls
