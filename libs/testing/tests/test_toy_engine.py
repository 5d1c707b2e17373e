from __future__ import annotations

import threading

import numpy as np
import pytest

from tritonpy import (
    Cancelled,
    DecoupledRefused,
    InferRequest,
    Internal,
    InvalidArgument,
    NotFound,
    Tensor,
)
from tritonpy_testing import RecordingSink, ToyEngine, ToyModel, model_config


@pytest.fixture
def engine():
    with ToyEngine() as engine:
        yield engine


@pytest.fixture
def recorder():
    return RecordingSink()


def ask(engine, recorder, model, values, **fields):
    request = InferRequest(model, {"IN": Tensor.from_numpy("IN", values)}, recorder.sink, **fields)
    engine.infer(request)
    return request


FP32 = np.array([1.0], np.float32)


def test_a_model_is_a_configuration_and_a_function(recorder):
    config = model_config(
        'name: "negate" input { name: "IN" data_type: TYPE_FP32 dims: 1 } output { name: "OUT" data_type: TYPE_FP32 dims: 1 }'
    )
    with ToyEngine([ToyModel(config, lambda inputs: [{"OUT": -inputs["IN"]}])]) as engine:
        [[response]] = recorder.wait(ask(engine, recorder, "negate", FP32))
        assert response.outputs[0].numpy().tolist() == [-1.0]
        assert [line.name for line in engine.repository_index()] == ["negate"]


def test_an_exception_of_a_function_is_the_response_s_error(recorder):
    config = model_config('name: "broken" input { name: "IN" data_type: TYPE_FP32 dims: 1 }')
    with ToyEngine([ToyModel(config, lambda inputs: 1 / 0)]) as engine:
        [[response]] = recorder.wait(ask(engine, recorder, "broken", FP32))
    assert isinstance(response.error, Internal)
    assert response.error.message == "division by zero"


def test_held_requests_wait_and_can_be_cancelled(engine, recorder):
    with engine.hold():
        kept, cancelled = (ask(engine, recorder, "identity", FP32) for _ in range(2))
        assert engine.wait_for_requests(2) == [kept, cancelled]
        cancelled.cancel()
        [[response]] = recorder.wait(cancelled)
        assert isinstance(response.error, Cancelled)
        assert recorder.responses(kept) == []
    recorder.wait(kept)
    recorder.check(kept, cancelled)


def test_waiting_for_missing_requests_fails(engine):
    with pytest.raises(AssertionError, match="0 of 1 requests arrived"):
        engine.wait_for_requests(1, timeout_s=0)


@pytest.mark.parametrize(
    ("model", "version", "kind"),
    [("nobody", -1, InvalidArgument), ("identity", 2, NotFound), ("repeat", -1, DecoupledRefused)],
)
def test_refusals_raise(engine, recorder, model, version, kind):
    with pytest.raises(kind):
        ask(engine, recorder, model, FP32, model_version=version)
    assert recorder.requests == []


def test_wrong_inputs_are_refused(engine, recorder):
    request = InferRequest("identity", {}, recorder.sink)
    with pytest.raises(InvalidArgument, match=r"expected the inputs \['IN'\], got \[\]"):
        engine.infer(request)


def test_statistics_count_successes_and_failures(engine, recorder):
    recorder.wait(ask(engine, recorder, "identity", FP32), ask(engine, recorder, "failing", FP32))
    counts = {each.name: each.inference_stats for each in engine.statistics()}
    assert (counts["identity"].success.count, counts["identity"].fail.count) == (1, 0)
    assert (counts["failing"].success.count, counts["failing"].fail.count) == (0, 1)
    assert engine.gauges()["failing", "1"].failures == {"BACKEND": 1}


def test_an_unloaded_model_is_unknown_until_it_is_loaded(engine, recorder):
    engine.unload_model("identity")
    with pytest.raises(NotFound, match="has no available versions"):
        ask(engine, recorder, "identity", FP32)
    assert "identity" not in {line.name for line in engine.repository_index(ready=True)}
    engine.load_model("identity")
    recorder.wait(ask(engine, recorder, "identity", FP32))


def test_its_thread_ends_with_it(recorder):
    before = set(threading.enumerate())
    with ToyEngine() as engine:
        recorder.wait(ask(engine, recorder, "identity", FP32))
        assert set(threading.enumerate()) - before
    assert set(threading.enumerate()) <= before
