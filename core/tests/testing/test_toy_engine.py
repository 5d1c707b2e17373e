from __future__ import annotations

import threading

import numpy as np
import pytest

from tritonpy import Cancelled, DecoupledRefused, InferRequest, Internal, InvalidArgument, NotFound, Tensor
from tritonpy.testing import ToyEngine, ToyModel, Witness, model_config


@pytest.fixture
def engine():
    with ToyEngine() as engine:
        yield engine


@pytest.fixture
def witness():
    return Witness()


def ask(engine, witness, model, values, **fields):
    request = InferRequest(model, {"IN": Tensor.from_numpy("IN", values)}, witness.sink, **fields)
    engine.infer(request)
    return request


FP32 = np.array([1.0], np.float32)


def test_a_model_is_a_configuration_and_a_function(witness):
    config = model_config(
        'name: "negate" input { name: "IN" data_type: TYPE_FP32 dims: 1 } output { name: "OUT" data_type: TYPE_FP32 dims: 1 }'
    )
    with ToyEngine([ToyModel(config, lambda inputs: [{"OUT": -inputs["IN"]}])]) as engine:
        [[response]] = witness.wait(ask(engine, witness, "negate", FP32))
        assert response.outputs[0].numpy().tolist() == [-1.0]
        assert [line.name for line in engine.repository_index()] == ["negate"]


def test_a_function_that_raises_answers_with_its_text(witness):
    config = model_config('name: "broken" input { name: "IN" data_type: TYPE_FP32 dims: 1 }')
    with ToyEngine([ToyModel(config, lambda inputs: 1 / 0)]) as engine:
        [[response]] = witness.wait(ask(engine, witness, "broken", FP32))
    assert isinstance(response.error, Internal)
    assert response.error.message == "division by zero"


def test_held_requests_wait_and_can_be_cancelled(engine, witness):
    with engine.hold():
        kept, cancelled = (ask(engine, witness, "identity", FP32) for _ in range(2))
        assert engine.wait_for_open(2) == [kept, cancelled]
        cancelled.cancel()
        [[response]] = witness.wait(cancelled)
        assert isinstance(response.error, Cancelled)
        assert witness.answers(kept) == []
    witness.wait(kept)
    witness.check(kept, cancelled)


def test_waiting_for_requests_that_do_not_come_fails(engine):
    with pytest.raises(AssertionError, match="0 of 1 requests came"):
        engine.wait_for_open(1, timeout_s=0)


@pytest.mark.parametrize(
    ("model", "version", "kind"),
    [("nobody", -1, InvalidArgument), ("identity", 2, NotFound), ("repeat", -1, DecoupledRefused)],
)
def test_refusals_raise(engine, witness, model, version, kind):
    with pytest.raises(kind):
        ask(engine, witness, model, FP32, model_version=version)
    assert witness.requests == []


def test_wrong_inputs_are_refused(engine, witness):
    request = InferRequest("identity", {}, witness.sink)
    with pytest.raises(InvalidArgument, match=r"expected the inputs \['IN'\], got \[\]"):
        engine.infer(request)


def test_statistics_count_successes_and_failures(engine, witness):
    witness.wait(ask(engine, witness, "identity", FP32), ask(engine, witness, "failing", FP32))
    counts = {each.name: each.inference_stats for each in engine.statistics()}
    assert (counts["identity"].success.count, counts["identity"].fail.count) == (1, 0)
    assert (counts["failing"].success.count, counts["failing"].fail.count) == (0, 1)
    assert engine.gauges()["failing", "1"].failures == {"BACKEND": 1}


def test_an_unloaded_model_is_gone_until_it_is_loaded(engine, witness):
    engine.unload_model("identity")
    with pytest.raises(NotFound, match="has no available versions"):
        ask(engine, witness, "identity", FP32)
    assert "identity" not in {line.name for line in engine.repository_index(ready=True)}
    engine.load_model("identity")
    witness.wait(ask(engine, witness, "identity", FP32))


def test_its_thread_ends_with_it(witness):
    before = set(threading.enumerate())
    with ToyEngine() as engine:
        witness.wait(ask(engine, witness, "identity", FP32))
        assert set(threading.enumerate()) - before
    assert set(threading.enumerate()) <= before
