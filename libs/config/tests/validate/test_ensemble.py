from __future__ import annotations

import pytest
from google.protobuf import text_format

from tritonpy_config.validate.ensemble import ensemble_problems
from tritonpy_protos.model_config_pb2 import ModelConfig

BASE = 'platform: "ensemble" input { name: "IN" } output { name: "OUT" }'


def step(inputs, outputs, model="a"):
    maps = [f'input_map {{ key: "{key}" value: "{value}" }}' for key, value in inputs.items()]
    maps += [f'output_map {{ key: "{key}" value: "{value}" }}' for key, value in outputs.items()]
    return f'step {{ model_name: "{model}" {" ".join(maps)} }} '


ONE = step({"X": "IN"}, {"Y": "OUT"})


def problems(steps, base=BASE):
    config = text_format.Parse(f"{base} ensemble_scheduling {{ {steps} }}", ModelConfig(name="e"))
    return [(each.path, each.text) for each in ensemble_problems(config)]


@pytest.mark.parametrize(
    "steps",
    [
        ONE,
        step({"X": "IN"}, {"Y": "mid"}) + step({"X": "mid"}, {"Y": "OUT"}),
        step({"X": "mid"}, {"Y": "OUT"}) + step({"X": "IN"}, {"Y": "mid"}),
        step({"X": "IN"}, {"Y": "l", "Z": "r"}) + step({"X": "l", "Z": "r"}, {"Y": "OUT"}),
    ],
)
def test_tensors_that_flow_from_inputs_to_outputs_are_valid(steps):
    assert problems(steps) == []


def test_other_models_are_not_checked():
    assert list(ensemble_problems(ModelConfig(name="m"))) == []


def test_the_ensemble_platform_needs_steps():
    config = ModelConfig(name="e", platform="ensemble")
    (problem,) = ensemble_problems(config)
    assert (
        problem.text == "ensemble scheduling must be set for ensemble e whose platform is ensemble"
    )
    assert problems("") == [("ensemble_scheduling.step", "must specify 'step' for ensemble 'e'")]


SETTINGS = [
    (
        BASE.replace('"ensemble"', '""'),
        "platform",
        "ensemble scheduling cannot be set for model 'e' whose platform is not ensemble",
    ),
    (
        BASE + " instance_group {}",
        "instance_group",
        "instance group should not be specified for ensemble 'e'",
    ),
    (
        BASE + " optimization {}",
        "optimization",
        "optimization should not be specified for ensemble 'e'",
    ),
    (
        BASE + " model_warmup {}",
        "model_warmup",
        "model_warmup can not be specified for ensemble 'e'",
    ),
]


@pytest.mark.parametrize(("base", "path", "expected"), SETTINGS)
def test_settings_that_an_ensemble_cannot_have_are_reported(base, path, expected):
    assert problems(ONE, base) == [(path, expected)]


STEPS = [
    (
        ONE + step({"X": "IN"}, {"Y": "o"}, model=""),
        "step[1]",
        "must specify 'model_name' in step 1 of ensemble 'e'",
    ),
    (step({}, {"Y": "OUT"}), "step[0]", "must specify 'input_map' in step 0 of ensemble 'e'"),
    (step({"X": "IN"}, {}), "step[0]", "must specify 'output_map' in step 0 of ensemble 'e'"),
    (
        ONE + ONE,
        'step[1].output_map["Y"]',
        "ensemble tensor 'OUT' can appear in an output map only once for ensemble 'e' step 1",
    ),
    (
        ONE + step({"X": "IN"}, {"Y": "nowhere"}),
        "step",
        "ensemble tensor 'nowhere' is unused in ensemble 'e'",
    ),
    (
        ONE + step({"X": "loop"}, {"Y": "loop"}),
        "step",
        "ensemble tensor 'loop' is unused in ensemble 'e'",
    ),
]


@pytest.mark.parametrize(("steps", "path", "expected"), STEPS)
def test_an_invalid_step_is_reported(steps, path, expected):
    assert problems(steps) == [(f"ensemble_scheduling.{path}", expected)]


def test_an_unused_input_is_reported():
    base = BASE + 'input { name: "MORE" }'
    assert problems(ONE, base) == [
        ("input[1].name", "ensemble input 'MORE' for ensemble e' is not used")
    ]


def test_an_output_without_a_step_is_reported():
    base = BASE + 'output { name: "MORE" }'
    assert problems(ONE, base) == [
        ("output[1].name", "ensemble output 'MORE' for ensemble e' is not used")
    ]


def test_the_missing_tensor_of_an_output_is_reported():
    steps = step({"X": "mid", "Z": "IN"}, {"Y": "OUT"}) + step({"X": "lost"}, {"Y": "mid"})
    expected = "output 'OUT' for ensemble 'e' is not written: at least one of its depending tensors, 'lost', is not connected"
    assert problems(steps) == [("output[0].name", expected)]


def test_an_output_that_depends_on_itself_is_not_written():
    steps = step({"X": "IN", "Z": "OUT"}, {"Y": "OUT"})
    assert problems(steps) == [("output[0].name", "output 'OUT' for ensemble 'e' is not written")]


def test_a_cycle_of_tensors_is_followed_once():
    steps = step({"X": "IN", "Z": "b"}, {"Y": "a"}) + step({"X": "a"}, {"Y": "b", "Z": "OUT"})
    ((path, text),) = problems(steps)
    assert path == "output[0].name"
    assert text.startswith(
        "output 'OUT' for ensemble 'e' is not written: at least one of its depending tensors, "
    )
