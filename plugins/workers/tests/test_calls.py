from __future__ import annotations

import asyncio
import gc
from types import SimpleNamespace

import numpy as np
import pytest

from plugins.workers.tests.fake_worker import (
    FakeWorker,
    Recorder,
    eventually,
    floats,
    model_context,
    on_loop,
    registry_of,
    tensor,
    worker_of,
)
from tritonpy.api.contexts import InstanceContext
from tritonpy.runners.slot import Slot
from tritonpy_ipc import Kind
from tritonpy_testing.parse import model_config
from tritonpy_testing.toy_engine import ToyEngine
from tritonpy_testing.toy_model import ToyModel, toy_models
from tritonpy_types import Batch, InferRequest, InferResponse, SequenceInfo
from tritonpy_types.errors import Code, Unavailable

FINAL, EMPTY = 1, 2
FAILED = "Model {0} - Error when running inference: {1}"


@on_loop
async def test_a_call_gets_the_outputs_of_the_model():
    with ToyEngine() as engine:
        async with worker_of(engine) as worker:
            for number, value in enumerate([1.5, 2.5]):
                worker.call(number, [floats(value)], model="identity")
            for number, value in enumerate([1.5, 2.5]):
                (words, (outputs,), fields) = await worker.answer()
                assert (words, outputs["OUT"].tolist(), fields) == ((number, FINAL), [value], {})


@on_loop
async def test_large_tensors_and_strings_go_both_ways():
    large = np.arange(100_000, dtype=np.float32)
    with ToyEngine() as engine:
        async with worker_of(engine) as worker:
            worker.call(1, [tensor(large)], model="identity")
            _, (outputs,), _ = await worker.answer()
            assert np.array_equal(outputs["OUT"], large)
            worker.call(
                2, [tensor(np.array([b"one", b"", "zwölf".encode()], object))], model="text"
            )
            _, (outputs,), _ = await worker.answer()
            assert outputs["OUT"].tolist() == [b"one", b"", "zwölf".encode()]


@on_loop
async def test_all_fields_of_a_call_reach_the_model():
    engine = Recorder()
    async with worker_of(engine) as worker:
        parent = InferRequest(
            "caller",
            {},
            None,
            principal="somebody",
            headers={"h": "1"},
            deadline_ns=5,
            trace="context",
        )
        worker.execute(parent)
        worker.call(
            9, [floats(1), tensor(np.int32([2]), "OTHER")], (1, 1), requested=("OUT", "MORE"), model="identity", version=1, id="abc",
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
    assert {name: each.numpy().tolist() for name, each in call.inputs.items()} == {
        "IN": [1.0],
        "OTHER": [2],
    }
    assert list(call.outputs) == ["OUT", "MORE"]
    assert dict(call.parameters) == {"a": 1, "b": "x", "c": True, "d": 0.5}
    assert call.sequence == SequenceInfo(7, start=True)
    assert call.accepts_decoupled
    assert call.parent is parent
    assert (call.principal, call.headers, call.deadline_ns, call.trace) == (
        "somebody",
        {"h": "1"},
        5,
        "context",
    )


@on_loop
async def test_missing_fields_of_a_call_have_defaults():
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
async def test_the_parent_of_a_call_is_the_only_request_of_its_execution():
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
    # The call has no parent among several requests, so a synthetic parent represents the execution,
    # which waits.
    assert several is not None
    assert several not in {first, second}
    assert several.batch is first.batch is second.batch


@pytest.mark.parametrize(
    "fields", [{"model": "nobody"}, {"model": "identity", "version": 7}, {"model": "unloaded"}]
)
@on_loop
async def test_a_model_that_does_not_serve_is_not_ready(fields):
    models = [*toy_models(), ToyModel(model_config('name: "unloaded"'), lambda _: [])]
    with ToyEngine(models) as engine:
        engine.unload_model("unloaded")
        async with worker_of(engine) as worker:
            worker.call(1, [floats(1)], **fields)
            text = (
                f"Failed for execute the inference request. Model '{fields['model']}' is not ready."
            )
            assert await worker.answer() == (
                (1, FINAL),
                [],
                {"error": [1, FAILED.format(fields["model"], text)]},
            )


@on_loop
async def test_a_refusal_of_the_model_keeps_its_text():
    with ToyEngine() as engine:
        async with worker_of(engine) as worker:
            worker.call(1, [tensor(np.float32([1]), "WRONG")], model="identity")
            text = "expected the inputs ['IN'], got ['WRONG']"
            assert await worker.answer() == (
                (1, FINAL),
                [],
                {"error": [1, FAILED.format("identity", text)]},
            )


@on_loop
async def test_a_duplicate_input_is_refused():
    with ToyEngine() as engine:
        async with worker_of(engine) as worker:
            worker.call(1, [floats(1), floats(1)], model="identity", id="abc")
            text = "[request id: abc] input 'IN' already exists in request"
            assert await worker.answer() == (
                (1, FINAL),
                [],
                {"error": [1, FAILED.format("identity", text)]},
            )


@on_loop
async def test_an_error_of_the_model_keeps_its_code():
    with ToyEngine() as engine:
        async with worker_of(engine) as worker:
            worker.call(1, [floats(1)], model="failing")
            assert await worker.answer() == (
                (1, FINAL),
                [],
                {"error": [1, "this model always fails"]},
            )


@on_loop
async def test_an_unexpected_engine_error_fails_only_the_call(caplog):
    class Broken(ToyEngine):
        def infer(self, request):
            raise ZeroDivisionError("secret")

    async with worker_of(Broken()) as worker:
        worker.call(1, [floats(1)], model="identity")
        _, _, fields = await worker.answer()
        assert "unexpected error in the server, see error id" in fields["error"][1]
        assert "secret" not in fields["error"][1]
        worker.call(1, [floats(1)], model="identity")
        await worker.answer()
    assert "ZeroDivisionError" in caplog.text


@on_loop
async def test_parameters_of_a_response_reach_the_caller():
    engine = Recorder()
    async with worker_of(engine) as worker:
        worker.call(1, [floats(1)], model="identity")
        await eventually(lambda: engine.requests)
        engine.requests[0].respond(InferResponse([floats(2)], parameters={"p": 1, "q": "x"}))
        assert (await worker.answer())[2] == {"parameters": {"p": 1, "q": "x"}}


@on_loop
async def test_a_cancelled_call_gets_a_cancelled_response():
    with ToyEngine() as engine, engine.hold():
        async with worker_of(engine) as worker:
            worker.call(1, [floats(1)], model="identity")
            worker.call(2, [floats(1)], model="identity")
            await asyncio.to_thread(engine.wait_for_requests, 2)
            worker.send(Kind.CALL_CANCEL, [2])
            assert await worker.answer() == (
                (2, FINAL),
                [],
                {"error": [Code.CANCELLED, "the request was cancelled"]},
            )
            worker.send(Kind.CALL_CANCEL, [2])  # it may cross the response
            assert [each.tag.number for each in engine.wait_for_requests(1)] == [1]


@on_loop
async def test_cancelling_a_request_cancels_its_calls():
    engine = Recorder()
    one, other = InferRequest("caller", {}, None), InferRequest("caller", {}, None)
    async with worker_of(engine) as worker:
        worker.execute(one, other)
        for number, request in enumerate([1, 2, 1]):
            worker.call(number, [floats(1)], (1, request), model="identity")
        await eventually(lambda: len(engine.requests) == 3)
        one.cancelled = True
        worker.session.cancelled(one)
        assert [call.cancelled for call in engine.requests] == [True, False, True]
        worker.call(3, [floats(1)], (1, 1), model="identity")
        await eventually(lambda: len(engine.requests) == 4)
        assert engine.requests[3].cancelled, "called for a request that had been cancelled"


@on_loop
async def test_the_end_of_a_worker_cancels_its_calls_and_drops_responses():
    engine = Recorder()
    async with worker_of(engine) as worker:
        for number in range(3):
            worker.call(number, [floats(1)], model="identity")
        await eventually(lambda: len(engine.requests) == 3)
    assert all(call.cancelled for call in engine.requests)
    await asyncio.sleep(0)


CALLER = 'name: "caller" instance_group { count: 1 kind: KIND_CPU }'


@on_loop
async def test_a_blocked_loop_ends_with_its_worker():
    engine = Recorder()
    engine._models["caller"] = ToyModel(model_config(CALLER), lambda _: [])
    registry = registry_of(engine)
    worker = FakeWorker(model_context(engine), registry)
    worker.model.config = engine.model_config("caller")
    worker.execute(InferRequest("caller", {}, None))
    worker.done(1)
    worker.call(1, [floats(1)], (0, 1), model="identity", blocks_loop=True)
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
        registry.graph.admit(back, called.batch)
    worker.close()
    registry.graph.admit(back, called.batch)  # the next worker responds


@pytest.mark.parametrize("request_number", [0, 1])
@on_loop
async def test_a_blocked_loop_cannot_serve_itself_even_without_unfinished_requests(request_number):
    engine = Recorder()
    engine._models["caller"] = ToyModel(model_config(CALLER), lambda _: [])
    async with worker_of(engine) as worker:
        worker.model.config = engine.model_config("caller")
        worker.execute(InferRequest("caller", {}, None))
        worker.done(1)
        worker.executions.open.clear()
        worker.call(1, [floats(1)], (0, request_number), model="caller", blocks_loop=True)
        _, _, fields = await worker.answer()
        assert "await 'async_exec'" in fields["error"][1]


@on_loop
async def test_inputs_stay_in_shared_memory_until_the_response():
    engine = Recorder()
    async with worker_of(engine) as worker:
        worker.call(1, [tensor(np.zeros(100_000, np.float32))], model="identity")
        await eventually(lambda: engine.requests)
        assert worker.endpoint._segment_pool._lent
        engine.requests.pop().respond(InferResponse(()))
        await worker.answer()
        gc.collect()
        worker.call(2, [floats(1)], model="identity")
        await eventually(lambda: engine.requests)
        engine.requests[0].respond(InferResponse(()))
        await worker.answer()
        assert not worker.endpoint._segment_pool._lent


@on_loop
async def test_a_deadlocking_call_is_refused_without_side_effects():
    engine = Recorder()
    engine._models["caller"] = ToyModel(model_config(CALLER), lambda _: [])
    async with worker_of(engine) as worker:
        worker.model.config = engine.model_config("caller")
        worker.execute(InferRequest("caller", {}, None))
        worker.call(1, [floats(1)], (1, 1), model="caller")
        _, _, fields = await worker.answer()
        assert fields["error"][1].startswith(
            FAILED.format(
                "caller", "the call would deadlock: instance 'caller_0_0' waits for model 'caller'"
            )
        )
        assert engine.requests == []
        worker.call(2, [floats(1)], (0, 1), model="caller")  # no instance waits
        await eventually(lambda: engine.requests)


@on_loop
async def test_a_worker_that_makes_calls_gets_no_prefetched_execution():
    engine = Recorder()
    async with worker_of(engine) as worker:
        worker.execute(InferRequest("caller", {}, None))
        worker.call(1, [floats(1)], (0, 1), model="identity")
        await eventually(lambda: engine.requests)
        assert not worker.executions.calls
        worker.call(2, [floats(1)], (1, 1), model="identity")
        await eventually(lambda: len(engine.requests) == 2)
        assert worker.executions.calls
