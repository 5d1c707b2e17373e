from __future__ import annotations

import pytest

from tritonpy import TritonError

from .simulated import plans


def budget(value):
    return f"parameters {{ key: 'weight_streaming_budget' value {{ string_value: '{value}' }} }}"


def engine(harness):
    return harness.model.shared.acquire(0).engine


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("", 4000),
        (budget("1000"), 1000),
        (budget("auto"), 2000),
        (budget("0"), 0),
        (budget("1GB"), 4000),
    ],
)
def test_as_many_bytes_of_weights_stay_on_the_gpu_as_the_model_says(simulation, text, left):
    with simulation.load(plans.double(streamable=4000), text) as harness:
        assert engine(harness).weight_streaming_budget_v2 == left


def test_an_engine_that_was_not_built_for_it_is_refused(simulation):
    with (
        pytest.raises(TritonError, match="build it with trtexec --allowWeightStreaming"),
        simulation.load(plans.double(), budget("auto")),
    ):
        pass


def test_a_rejected_streaming_budget_fails_the_load(simulation, monkeypatch):
    from .simulated.tensorrt import Engine

    fixed = property(lambda _engine: 4000, lambda _engine, _value: None)
    monkeypatch.setattr(Engine, "weight_streaming_budget_v2", fixed, raising=False)
    with (
        pytest.raises(TritonError, match="unable to set the weight streaming budget to 10 bytes"),
        simulation.load(plans.double(streamable=4000), budget("10")),
    ):
        pass
