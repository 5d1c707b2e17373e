from __future__ import annotations

from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy import DATATYPES
from tritonpy_config.model_fit import (
    called_model,
    control_inputs,
    dims_misfit,
    dims_text,
    element_count,
    model_dims,
    namespace_of,
    needed_steps,
    qualified_name,
    set_dims,
    shape_text,
    trunk_counts,
    unable_to_load,
)
from tritonpy_protos.model_config_pb2 import ModelEnsembling
from tritonpy_testing import model_config

INITIAL = "an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, making complete shape "
CONTROLS = """sequence_batching {
    control_input { name: "ID" control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_STRING } }
    control_input {
        name: "BOTH"
        control { kind: CONTROL_SEQUENCE_READY fp32_false_true: [0, 1] }
        control { kind: CONTROL_SEQUENCE_START int32_false_true: [0, 1] }
    }
    control_input { name: "END" control { kind: CONTROL_SEQUENCE_END bool_false_true: [false, true] } }
}"""


def field(text: str):
    return model_config(f'input {{ name: "x" {text} }}').input[0]


@pytest.mark.parametrize(
    ("text", "dims"),
    [
        ("dims: [2, -1]", (2, -1)),
        ("dims: [4] reshape { shape: [2, 2] }", (2, 2)),
        ("dims: [1] reshape { }", ()),
    ],
)
def test_model_dims_are_those_after_reshape(text, dims):
    assert model_dims(field(text)) == dims


@pytest.mark.parametrize(
    ("dims", "batched", "seen", "model"),
    [
        ((-1, 3), True, [3], (3,)), ((-1, 3), False, [-1, 3], (-1, 3)), ((-1,), True, [1], ()), ((), False, [1], (1,)),
    ],
)  # fmt: skip
def test_set_dims_uses_one_element_for_a_scalar(dims, batched, seen, model):
    empty = field("")
    set_dims(empty, dims, batched)
    assert (list(empty.dims), model_dims(empty)) == (seen, model)


def test_control_inputs_are_in_the_order_of_their_kinds():
    found = [("BOTH", "INT32"), ("END", "BOOL"), ("BOTH", "FP32"), ("ID", "BYTES")]
    assert control_inputs(model_config(CONTROLS)) == [
        (name, DATATYPES[kind].number) for name, kind in found
    ]
    assert control_inputs(model_config("")) == []


def test_shapes_are_written_without_spaces():
    assert [shape_text(dims) for dims in ((-1, 3), (), [7])] == ["[-1,3]", "[]", "[7]"]


def test_a_mismatch_names_the_model():
    assert (
        unable_to_load(model_config('name: "m"'), "why").message == "unable to load model 'm', why"
    )


@pytest.mark.parametrize(
    ("batch", "how"),
    [
        (0, "shape [-1,3]"),
        (8, f"{INITIAL}[-1,3]"),
    ],
)
def test_different_dims_are_reported_with_tritons_text(batch, how):
    error = dims_misfit(model_config(f'name: "m" max_batch_size: {batch}'), "x", (4, 4, 4), (-1, 3))
    assert error.message == (
        "model 'm', tensor 'x': the model expects 3 dimensions (shape [4,4,4]) but the model configuration "
        f"specifies 2 dimensions ({how}). They have 3 dimensions in the model and 2 in the configuration: "
        + (
            "the model has no variable batch dimension, so write max_batch_size: 0 and dims: "
            if batch
            else "write dims: "
        )
        + "[ 4, 4, 4 ]"
    )


FIXED_BATCH = (
    "Dimension 1 is 8 in the model and -1 in the configuration: the model has no variable batch dimension, so write "
    "max_batch_size: 0 and dims: [ 8, 3 ]"
)


@pytest.mark.parametrize(
    ("text", "model", "configured", "hint"),
    [
        (
            "max_batch_size: 4",
            (-1, 3),
            (-1, 4),
            "Dimension 2 is 3 in the model and 4 in the configuration: write dims: [ 3 ]",
        ),
        (
            "",
            (2, 3),
            (2, 4),
            "Dimension 2 is 3 in the model and 4 in the configuration: write dims: [ 2, 3 ]",
        ),
        (
            "max_batch_size: 4",
            (-1,),
            (-1, 1),
            "They have 1 dimensions in the model and 2 in the configuration: write dims: [ ]",
        ),
        (
            "max_batch_size: 4",
            (8, 3),
            (-1, 3),
            FIXED_BATCH,
        ),
        (
            'input { name: "x" dims: 6 reshape { shape: [2, 4] } }',
            (2, 3),
            (2, 4),
            "Dimension 2 is 3 in the model and 4 in the configuration: write reshape { shape: [ 2, 3 ] }",
        ),
    ],
)
def test_a_hint_with_the_correct_dims_follows(text, model, configured, hint):
    message = dims_misfit(model_config(f'name: "m" {text}'), "x", model, configured).message
    assert message.endswith(f"). {hint}")


@pytest.mark.parametrize(
    ("namespace", "name", "key"), [("", "m", "m"), ("/a", "m", "/a::m"), ("", "a::m", "a::m")]
)
def test_a_qualified_name_combines_name_and_namespace(namespace, name, key):
    assert qualified_name(namespace, name) == key
    assert namespace_of(key, name) == namespace


def test_a_step_uses_the_model_of_its_namespace():
    assert called_model(ModelEnsembling.Step(model_name="m")) == "m"
    assert called_model(ModelEnsembling.Step(model_name="m", model_namespace="/a")) == "/a::m"


STEPS = model_config(
    """
    name: "e" platform: "ensemble"
    ensemble_scheduling { step [
      { model_name: "d" input_map { key: "X" value: "b" } input_map { key: "Y" value: "c" } output_map { key: "Z" value: "OUT" } },
      { model_name: "b" input_map { key: "X" value: "IN" } output_map { key: "Z" value: "b" } output_map { key: "W" value: "MORE" } },
      { model_name: "c" input_map { key: "X" value: "IN" } output_map { key: "Z" value: "c" } },
      { model_name: "f" input_map { key: "X" value: "b" } output_map { key: "Z" value: "LAST" } }
    ] }
    """
).ensemble_scheduling.step


def test_a_step_is_needed_directly_or_indirectly():
    assert needed_steps(STEPS, ["OUT"]) == [0, 1, 2]
    assert needed_steps(STEPS, ["MORE"]) == [1]
    assert needed_steps(STEPS, ["LAST", "MORE"]) == [1, 3]


def test_unknown_tensors_need_no_step():
    assert needed_steps(STEPS, ["IN", "unknown"]) == []


def test_a_cycle_ends():
    circle = model_config(
        'name: "e" platform: "ensemble" ensemble_scheduling { step { model_name: "a" '
        'input_map { key: "X" value: "t" } output_map { key: "Y" value: "t" } } }'
    ).ensemble_scheduling.step
    assert needed_steps(circle, ["t"]) == [0]


SIZES = st.lists(st.integers(1, 50) | st.just(-1), max_size=8)


def test_text_has_no_spaces():
    assert dims_text((1, -1, 3)) == "[1,-1,3]"
    assert dims_text(()) == "[]"


@given(st.lists(st.integers(0, 1 << 40), min_size=1, max_size=8))
def test_fixed_dimensions_are_multiplied_without_overflow(sizes):
    assert element_count(sizes) == prod(sizes)


def test_no_dimensions_count_as_zero_elements():
    assert element_count([]) == 0


@given(SIZES.filter(lambda sizes: -1 in sizes))
def test_one_variable_dimension_makes_the_count_unknown(sizes):
    assert element_count(sizes) == -1


@given(SIZES)
def test_runs_cover_every_fixed_dimension(sizes):
    counts = trunk_counts(sizes)
    assert len(counts) == sizes.count(-1) + 1
    assert prod(counts) == prod(size for size in sizes if size != -1)


def test_runs_are_split_at_variable_dimensions():
    assert trunk_counts([2, 4, -1, 6]) == trunk_counts([8, -1, 1, 6]) == [8, 6]
