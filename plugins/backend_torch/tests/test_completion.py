from __future__ import annotations

import pytest
from google.protobuf import text_format
from hypothesis import given
from hypothesis import strategies as st

from tritonpy import DATATYPE_OF_NUMBER, DATATYPES, InvalidArgument
from tritonpy_backend_torch.check import check
from tritonpy_backend_torch.completion import completed, needs_completion
from tritonpy_backend_torch.signature import ANY_ROWS, Place, Signature, TensorInfo
from tritonpy_protos.model_config_pb2 import ModelConfig

BATCHED = Signature(
    (Place(("x", "INPUT__0"), TensorInfo("FP32", (-1, 3))), Place((), default=1), Place(("flag",), TensorInfo("BOOL", (-1,)))),
    (Place(("y",), TensorInfo("BF16", (-1, -1, 2))),),
    16,
)  # fmt: skip
FIXED = Signature((Place(("x",), TensorInfo("INT8", (2, -1))),), (Place(("y",), TensorInfo("BOOL", ())),))
numeric = st.sampled_from(sorted(DATATYPES.keys() - {"BYTES"}))


@st.composite
def signatures(draw):
    def places(prefix):
        infos = draw(
            st.lists(
                st.builds(TensorInfo, numeric, st.lists(st.sampled_from([-1, 1, 3]), max_size=3).map(tuple)),
                min_size=1,
                max_size=3,
            )
        )
        return tuple(Place((f"{prefix}{number}",), info) for number, info in enumerate(infos))

    inputs, outputs = places("a"), places("b")
    batches = all(place.info.dims[:1] == (-1,) for place in (*inputs, *outputs))
    return Signature(inputs, outputs, draw(st.sampled_from([1, 8, ANY_ROWS])) if batches else 0)


def config(text=""):
    return text_format.Parse('name: "m" ' + text, ModelConfig())


def test_a_model_that_batches_gets_io_batch_size_and_batching():
    result = completed(config(), BATCHED, 4)
    assert result.max_batch_size == 4
    assert result.HasField("dynamic_batching")
    assert [(item.name, DATATYPE_OF_NUMBER[item.data_type].name, list(item.dims)) for item in (*result.input, *result.output)] == [
        ("x", "FP32", [3]), ("flag", "BOOL", [1]), ("y", "BF16", [-1, 2]),
    ]  # fmt: skip
    assert result.input[1].HasField("reshape"), "clients see one element where the batched model has none"


def test_a_model_that_does_not_batch_keeps_all_dimensions_and_shows_a_scalar_as_one_element():
    result = completed(config(), FIXED, 4)
    assert (result.max_batch_size, result.WhichOneof("scheduling_choice")) == (0, None)
    assert (list(result.input[0].dims), list(result.output[0].dims)) == ([2, -1], [1])
    assert not result.output[0].HasField("reshape")


@pytest.mark.parametrize(
    ("text", "default", "size"), [("max_batch_size: 3", 4, 3), ("", 64, 16), ("", 1, 1), ("", 0, 0), ("", -3, 0)]
)
def test_the_batch_size_is_the_given_one_or_the_default_as_far_as_the_model_goes(text, default, size):
    result = completed(config(text), BATCHED, default)
    assert result.max_batch_size == size
    assert result.HasField("dynamic_batching") == (size > 1)


def test_a_batch_size_of_a_model_that_cannot_batch_is_refused():
    with pytest.raises(InvalidArgument) as refused:
        completed(config("max_batch_size: 2"), FIXED, 4)
    assert refused.value.message == (
        "autofill failed for model 'm': model does not support batching while non-zero max_batch_size is specified"
    )


def test_a_chosen_scheduler_is_kept_and_what_it_makes_is_not_the_clients():
    text = """sequence_batching {
        control_input { name: "flag" control { kind: CONTROL_SEQUENCE_START bool_false_true: [false, true] } }
        state { input_name: "INPUT__0" output_name: "z" }
    }"""
    result = completed(config(text), BATCHED, 4)
    assert result.WhichOneof("scheduling_choice") == "sequence_batching"
    assert [item.name for item in result.input] == []
    assert [item.name for item in result.output] == ["y"]


@pytest.mark.parametrize(
    ("text", "needs"),
    [
        ("", True),
        ('input { name: "x" }', True),
        ('output { name: "y" }', True),
        ('input { name: "x" } output { name: "y" }', False),
        ('batch_input { target_name: "x" } output { name: "y" }', False),
    ],
)
def test_a_configuration_with_inputs_and_outputs_is_complete(text, needs):
    assert needs_completion(config(text)) == needs


@given(signatures(), st.integers(0, 9))
def test_what_is_completed_fits_the_model(signature, default):
    check(completed(config(), signature, default), signature)
