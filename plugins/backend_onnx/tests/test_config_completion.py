from __future__ import annotations

import pytest
from google.protobuf import text_format
from hypothesis import given
from hypothesis import strategies as st

from tritonpy import DATATYPES, InvalidArgument
from tritonpy.config import DATATYPE_OF_NUMBER
from tritonpy_backend_kit.config_completion import needs_completion
from tritonpy_backend_onnx.config_check import check_config
from tritonpy_backend_onnx.config_completion import complete_config
from tritonpy_backend_onnx.signature import Signature, TensorInfo
from tritonpy_protos.model_config_pb2 import ModelConfig

BATCHED = Signature(
    {"A": TensorInfo("FP32", (-1, 3)), "B": TensorInfo("BYTES", (-1,))},
    {"C": TensorInfo("BF16", (-1, -1, 2))},
    {},
)
FIXED = Signature({"A": TensorInfo("INT8", (2, -1))}, {"C": TensorInfo("BOOL", ())}, {})
infos = st.builds(
    TensorInfo,
    st.sampled_from(sorted(DATATYPES)),
    st.lists(st.sampled_from([-1, 1, 3]), max_size=4).map(tuple),
)
tensors = st.dictionaries(st.text("abc", min_size=1), infos, min_size=1, max_size=3)


def config(text=""):
    return text_format.Parse('name: "m" ' + text, ModelConfig())


def test_a_batching_model_gets_tensors_batch_size_and_batching():
    result = complete_config(config(), BATCHED, 4)
    assert result.max_batch_size == 4
    assert result.HasField("dynamic_batching")
    assert [(item.name, DATATYPE_OF_NUMBER[item.data_type].name, list(item.dims)) for item in (*result.input, *result.output)] == [
        ("A", "FP32", [3]), ("B", "BYTES", [1]), ("C", "BF16", [-1, 2]),
    ]  # fmt: skip
    assert result.input[1].HasField("reshape"), (
        "clients see one element where the batched model has none"
    )
    assert list(result.input[1].reshape.shape) == []


def test_a_model_without_batching_keeps_all_dimensions_and_scalars_have_one_element():
    result = complete_config(config(), FIXED, 4)
    assert result.max_batch_size == 0
    assert not result.HasField("dynamic_batching")
    assert list(result.input[0].dims) == [2, -1]
    assert list(result.output[0].dims) == [1]
    assert not result.output[0].HasField("reshape")


def test_a_given_batch_size_is_kept():
    assert complete_config(config("max_batch_size: 16"), BATCHED, 4).max_batch_size == 16


@pytest.mark.parametrize(
    ("text", "default"), [("max_batch_size: 1", 4), ("", 1), ("", 0), ("", -3)]
)
def test_a_default_batch_size_of_one_enables_no_batching(text, default):
    result = complete_config(config(text), BATCHED, default)
    assert result.max_batch_size == max(0, min(default, 1))
    assert not result.HasField("dynamic_batching")


def test_a_chosen_scheduler_is_kept():
    result = complete_config(
        config("sequence_batching { max_sequence_idle_microseconds: 7 }"), BATCHED, 4
    )
    assert result.WhichOneof("scheduling_choice") == "sequence_batching"


def test_a_batch_size_for_a_model_that_cannot_batch_is_refused():
    with pytest.raises(InvalidArgument) as caught:
        complete_config(config("max_batch_size: 2"), FIXED, 4)
    assert caught.value.message == (
        "autofill failed for model 'm': model does not support batching while non-zero max_batch_size is specified"
    )


def test_configured_tensors_are_unchanged():
    text = 'input { name: "A" data_type: TYPE_FP32 dims: 3 }'
    result = complete_config(config(text), BATCHED, 4)
    assert [item.name for item in result.input] == ["A"]
    assert [item.name for item in result.output] == ["C"]


def test_the_input_configuration_is_not_modified():
    given_config = config()
    complete_config(given_config, BATCHED, 4)
    assert given_config == config()


@pytest.mark.parametrize(
    ("text", "needed"),
    [
        ("", True),
        ('input { name: "A" }', True),
        ('output { name: "A" }', True),
        ('input { name: "A" } output { name: "B" }', False),
        ('batch_input { target_name: "A" } output { name: "B" }', False),
    ],
)
def test_a_configuration_with_inputs_and_outputs_needs_no_completion(text, needed):
    assert needs_completion(config(text)) is needed


@given(inputs=tensors, outputs=tensors, default=st.integers(0, 8))
def test_a_completed_configuration_always_fits_its_model(inputs, outputs, default):
    signature = Signature(inputs, outputs, {})
    check_config(complete_config(config(), signature, default), signature)
