from __future__ import annotations

import pytest
from google.protobuf import text_format
from hypothesis import given
from hypothesis import strategies as st

from tritonpy import DATATYPES, InvalidArgument
from tritonpy.config import DATATYPE_OF_NUMBER
from tritonpy_backend_kit.config_completion import needs_completion
from tritonpy_backend_torch.config_check import check_config
from tritonpy_backend_torch.config_completion import complete_config
from tritonpy_backend_torch.signature import ANY_ROWS, Signature, TensorInfo, TensorSpec
from tritonpy_protos.model_config_pb2 import ModelConfig

BATCHED = Signature(
    (TensorSpec(("x", "INPUT__0"), TensorInfo("FP32", (-1, 3))), TensorSpec((), default=1), TensorSpec(("flag",), TensorInfo("BOOL", (-1,)))),
    (TensorSpec(("y",), TensorInfo("BF16", (-1, -1, 2))),),
    16,
)  # fmt: skip
FIXED = Signature(
    (TensorSpec(("x",), TensorInfo("INT8", (2, -1))),),
    (TensorSpec(("y",), TensorInfo("BOOL", ())),),
)
numeric = st.sampled_from(sorted(DATATYPES.keys() - {"BYTES"}))


@st.composite
def signatures(draw):
    def specs(prefix):
        infos = draw(
            st.lists(
                st.builds(
                    TensorInfo,
                    numeric,
                    st.lists(st.sampled_from([-1, 1, 3]), max_size=3).map(tuple),
                ),
                min_size=1,
                max_size=3,
            )
        )
        return tuple(TensorSpec((f"{prefix}{number}",), info) for number, info in enumerate(infos))

    inputs, outputs = specs("a"), specs("b")
    batches = all(spec.info.dims[:1] == (-1,) for spec in (*inputs, *outputs))
    return Signature(inputs, outputs, draw(st.sampled_from([1, 8, ANY_ROWS])) if batches else 0)


def config(text=""):
    return text_format.Parse('name: "m" ' + text, ModelConfig())


def test_a_batching_model_gets_tensors_batch_size_and_batching():
    result = complete_config(config(), BATCHED, 4)
    assert result.max_batch_size == 4
    assert result.HasField("dynamic_batching")
    assert [(item.name, DATATYPE_OF_NUMBER[item.data_type].name, list(item.dims)) for item in (*result.input, *result.output)] == [
        ("x", "FP32", [3]), ("flag", "BOOL", [1]), ("y", "BF16", [-1, 2]),
    ]  # fmt: skip
    assert result.input[1].HasField("reshape"), (
        "clients see one element where the batched model has none"
    )


def test_a_model_without_batching_keeps_all_dimensions_and_scalars_have_one_element():
    result = complete_config(config(), FIXED, 4)
    assert (result.max_batch_size, result.WhichOneof("scheduling_choice")) == (0, None)
    assert (list(result.input[0].dims), list(result.output[0].dims)) == ([2, -1], [1])
    assert not result.output[0].HasField("reshape")


@pytest.mark.parametrize(
    ("text", "default", "size"),
    [("max_batch_size: 3", 4, 3), ("", 64, 16), ("", 1, 1), ("", 0, 0), ("", -3, 0)],
)
def test_the_batch_size_is_configured_or_the_default_up_to_the_models_limit(text, default, size):
    result = complete_config(config(text), BATCHED, default)
    assert result.max_batch_size == size
    assert result.HasField("dynamic_batching") == (size > 1)


def test_a_batch_size_of_a_model_that_cannot_batch_is_refused():
    with pytest.raises(InvalidArgument) as refused:
        complete_config(config("max_batch_size: 2"), FIXED, 4)
    assert refused.value.message == (
        "autofill failed for model 'm': model does not support batching while non-zero max_batch_size is specified"
    )


def test_a_configured_scheduler_is_kept_and_its_tensors_are_not_client_inputs():
    text = """sequence_batching {
        control_input { name: "flag" control { kind: CONTROL_SEQUENCE_START bool_false_true: [false, true] } }
        state { input_name: "INPUT__0" output_name: "z" }
    }"""
    result = complete_config(config(text), BATCHED, 4)
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
def test_a_completed_configuration_always_fits_its_model(signature, default):
    check_config(complete_config(config(), signature, default), signature)
