from __future__ import annotations

import pytest

from tritonpy import DATATYPES
from tritonpy.config.model_fit import control_inputs, dims_misfit, model_dims, set_dims, shape_text, unable_to_load
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
    [("dims: [2, -1]", (2, -1)), ("dims: [4] reshape { shape: [2, 2] }", (2, 2)), ("dims: [1] reshape { }", ())],
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
    assert control_inputs(model_config(CONTROLS)) == [(name, DATATYPES[kind].number) for name, kind in found]
    assert control_inputs(model_config("")) == []


def test_shapes_are_written_without_spaces():
    assert [shape_text(dims) for dims in ((-1, 3), (), [7])] == ["[-1,3]", "[]", "[7]"]


def test_a_mismatch_names_the_model():
    assert unable_to_load(model_config('name: "m"'), "why").message == "unable to load model 'm', why"


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
        ("", (2, 3), (2, 4), "Dimension 2 is 3 in the model and 4 in the configuration: write dims: [ 2, 3 ]"),
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
