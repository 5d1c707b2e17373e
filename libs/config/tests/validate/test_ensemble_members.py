from __future__ import annotations

import pytest
from google.protobuf import text_format

from tritonpy_config.validate.ensemble_members import any_decoupled, member_problems
from tritonpy_protos.model_config_pb2 import ModelConfig


def config(text):
    return text_format.Parse(text, ModelConfig())


def model(inputs="IN", outputs="OUT", datatype="INT32", dims="-1", batch=0, more=""):
    tensors = [
        f'input {{ name: "{name}" data_type: TYPE_{datatype} dims: [{dims}] }}'
        for name in inputs.split()
    ]
    tensors += [
        f'output {{ name: "{name}" data_type: TYPE_{datatype} dims: [{dims}] }}'
        for name in outputs.split()
    ]
    return config(f"max_batch_size: {batch} {' '.join(tensors)} {more}")


def ensemble(*steps, dims="-1", batch=0, outputs="Y", more=""):
    definitions = [
        f'step {{ model_name: "{name}" {maps("input_map", inputs)} {maps("output_map", made)} }}'
        for name, inputs, made in steps
    ]
    return model(
        "X",
        outputs,
        dims=dims,
        batch=batch,
        more=f"ensemble_scheduling {{ {' '.join(definitions)} }} {more}",
    )


def maps(name, pairs):
    return " ".join(f'{name} {{ key: "{key}" value: "{value}" }}' for key, value in pairs.items())


def problems(given, *members):
    return [
        (each.path, each.text.removeprefix("in ensemble e, "))
        for each in member_problems("e", given, members)
    ]


STEP = "ensemble_scheduling.step[0]"
ONE = ("m", {"IN": "X"}, {"OUT": "Y"})
LINE = (("m", {"IN": "X"}, {"OUT": "mid"}), ("n", {"IN": "mid"}, {"OUT": "Y"}))
DECOUPLED = "model_transaction_policy { decoupled: true }"


@pytest.mark.parametrize(
    ("given", "members"),
    [
        (ensemble(ONE), [model()]),
        (ensemble(ONE, dims="3"), [model()]),
        (ensemble(*LINE), [model(dims="2"), model()]),
        (ensemble(ONE, batch=2), [model(batch=2)]),
        (ensemble(ONE, batch=2), [model(batch=8)]),
        (ensemble(ONE, batch=2, dims="3"), [model(dims="-1, 3")]),
        (ensemble(ONE, dims="-1, 3"), [model(dims="3", batch=4)]),
        (
            ensemble(ONE),
            [model(more='input { name: "MORE" data_type: TYPE_INT32 dims: 1 optional: true }')],
        ),
        (ensemble(ONE), [model(outputs="OUT UNUSED")]),
        (ensemble(ONE), [model(more=DECOUPLED)]),
        (ensemble(*LINE), [model(more=DECOUPLED), model(more=DECOUPLED)]),
    ],
)
def test_matching_members_have_no_problems(given, members):
    assert problems(given, *members) == []


def test_a_reshaped_tensor_has_the_shape_that_the_members_see():
    given = ensemble(ONE, dims="6")
    given.input[0].reshape.shape.extend([2, 3])
    given.output[0].reshape.shape.extend([2, 3])
    assert problems(given, model(dims="2, 3")) == []
    assert (
        "inconsistent shape: [2,3] is inferred from model e while [6]"
        in problems(given, model(dims="6"))[0][1]
    )


WRONG = {
    "type": (
        ensemble(*LINE),
        [model(), model(datatype="FP32")],
        [
            ('ensemble_scheduling.step[1].input_map["IN"]', "ensemble tensor mid: inconsistent data type: TYPE_INT32 is inferred from model m while TYPE_FP32 is inferred from model n"),
            ('ensemble_scheduling.step[1].output_map["OUT"]', "ensemble tensor Y: inconsistent data type: TYPE_INT32 is inferred from model e while TYPE_FP32 is inferred from model n"),
        ],
    ),
    "shape": (
        ensemble(ONE, dims="2", batch=2),
        [model(dims="3", batch=2)],
        [
            (f'{STEP}.input_map["IN"]', "ensemble tensor X: inconsistent shape: [-1,2] is inferred from model e while [-1,3] is inferred from model m"),
            (f'{STEP}.output_map["OUT"]', "ensemble tensor Y: inconsistent shape: [-1,2] is inferred from model e while [-1,3] is inferred from model m"),
        ],
    ),
    "batch size": (
        ensemble(ONE, batch=4),
        [model(batch=3)],
        [(STEP, "ensemble e allows maximum batch size 4, but it contains model m which only allows maximum batch size to be 3")],
    ),
    "an unknown input": (
        ensemble(("m", {"IN": "X", "NO": "X"}, {"OUT": "Y"})),
        [model()],
        [(f'{STEP}.input_map["NO"]', "ensemble tensor X is mapping to non-existing input NO in model m")],
    ),
    "an input that is not mapped": (
        ensemble(ONE),
        [model("IN MORE")],
        [(f"{STEP}.input_map", "input MORE in model m is not mapped to any ensemble tensors")],
    ),
    "an unknown output": (
        ensemble(("m", {"IN": "X"}, {"NO": "Y"})),
        [model()],
        [(f'{STEP}.output_map["NO"]', "ensemble tensor Y is mapped from non-existing output NO in model m")],
    ),
    "a stream and an input": (
        ensemble(("m", {"IN": "X"}, {"OUT": "mid"}), ("n", {"IN": "mid", "MORE": "X"}, {"OUT": "Y"})),
        [model(more=DECOUPLED), model("IN MORE")],
        [("ensemble_scheduling.step[1].input_map", "step of model 'e' receives inputs originated from different decoupled models")],
    ),
    "two streams in the outputs": (
        ensemble(("m", {"IN": "X"}, {"OUT": "Y"}), ("n", {"IN": "X"}, {"OUT": "Z"}), outputs="Y Z"),
        [model(more=DECOUPLED), model(more=DECOUPLED)],
        [("output", "step of model 'e' receives inputs originated from different decoupled models")],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("given", "members", "expected"), WRONG.values(), ids=WRONG)
def test_a_mismatch_is_reported_with_tritons_text_and_its_key(given, members, expected):
    assert problems(given, *members) == expected


def test_all_problems_are_reported_at_once():
    given = ensemble(("m", {"NO": "X"}, {"OUT": "Y"}), batch=9)
    assert [path for path, _ in problems(given, model(datatype="FP32", batch=1))] == [
        STEP,
        f'{STEP}.input_map["NO"]',
        f"{STEP}.input_map",
        f'{STEP}.output_map["OUT"]',
    ]


def test_models_with_namespaces_have_qualified_names():
    given = ensemble(("m", {"IN": "X", "NO": "X"}, {"OUT": "Y"}))
    given.ensemble_scheduling.step[0].model_namespace = "/models"
    assert problems(given, model())[0][1].endswith("non-existing input NO in model /models::m")


def test_one_decoupled_member_makes_an_ensemble_decoupled():
    assert any_decoupled([model(), model(more=DECOUPLED)])
    assert not any_decoupled([model()])
