from __future__ import annotations

import pytest
from google.protobuf import text_format
from hypothesis import given
from hypothesis import strategies as st

from tritonpy import DATATYPES, Internal, InvalidArgument
from tritonpy.config import DATATYPE_OF_NUMBER
from tritonpy_backend_tf.config_check import check_config
from tritonpy_backend_tf.config_completion import complete_config, needs_completion
from tritonpy_backend_tf.signature import Signature, TensorInfo
from tritonpy_protos.model_config_pb2 import ModelConfig


def info(datatype, *dims):
    return TensorInfo(datatype, dims, "t:0")


BATCHED = Signature(
    {"A": info("FP32", -1, 3), "B": info("BYTES", -1)},
    {"C": info("BF16", -1, -1, 2), "D": info("BOOL", -1, 1)},
)
FIXED = Signature({"A": info("INT8", 2, -1)}, {"C": info("BOOL")})
UNKNOWN = Signature({"A": TensorInfo("INT8", None, "t:0")}, {"C": info("BOOL", -1)})
infos = st.builds(
    TensorInfo,
    st.sampled_from(sorted(DATATYPES)),
    st.lists(st.sampled_from([-1, 1, 3]), max_size=4).map(tuple),
    st.just("t:0"),
)
tensors = st.dictionaries(st.text("abc", min_size=1), infos, min_size=1, max_size=3)


def config(text=""):
    return text_format.Parse('name: "m" ' + text, ModelConfig())


def fields(result):
    return [
        (item.name, DATATYPE_OF_NUMBER[item.data_type].name, list(item.dims))
        for item in (*result.input, *result.output)
    ]


def test_a_batching_model_gets_tensors_batch_size_and_batching():
    result = complete_config(config(), BATCHED, 4)
    assert result.max_batch_size == 4
    assert result.HasField("dynamic_batching")
    assert fields(result) == [
        ("A", "FP32", [3]),
        ("B", "BYTES", [1]),
        ("C", "BF16", [-1, 2]),
        ("D", "BOOL", [1]),
    ]
    assert result.input[1].HasField("reshape"), (
        "clients see one element where the batched model has none"
    )
    assert list(result.input[1].reshape.shape) == []
    assert not result.output[1].HasField("reshape")


def test_a_model_without_batching_keeps_all_dimensions_and_scalars_have_one_element():
    result = complete_config(config(), FIXED, 4)
    assert (result.max_batch_size, result.HasField("dynamic_batching")) == (0, False)
    assert fields(result) == [("A", "INT8", [2, -1]), ("C", "BOOL", [1])]
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


def test_a_configured_scheduler_is_kept_and_its_tensors_are_not_client_inputs():
    text = """sequence_batching {
        control_input { name: "B" control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_STRING } }
        state { input_name: "A" output_name: "C" data_type: TYPE_FP32 dims: 3 } }"""
    result = complete_config(config(text), BATCHED, 4)
    assert result.WhichOneof("scheduling_choice") == "sequence_batching"
    assert fields(result) == [("D", "BOOL", [1])]


def test_a_batch_input_is_not_a_client_input():
    text = 'batch_input { target_name: "B" source_input: "A" }'
    assert [field.name for field in complete_config(config(text), BATCHED, 4).input] == ["A"]


def test_a_batch_size_for_a_model_that_cannot_batch_is_refused():
    with pytest.raises(Internal) as caught:
        complete_config(config("max_batch_size: 2"), FIXED, 4)
    assert caught.value.message == (
        "unable to autofill for 'm', configuration specified max-batch 2 but model signature does not support batching"
    )


def test_configured_tensors_are_completed_and_missing_inputs_added():
    result = complete_config(config('input { name: "B" } output { name: "D" dims: 1 }'), BATCHED, 4)
    assert fields(result) == [("B", "BYTES", [1]), ("A", "FP32", [3]), ("D", "BOOL", [1])]


def test_inputs_of_a_graph_without_a_signature_are_added_only_if_none_is_configured():
    graph = Signature(BATCHED.inputs, BATCHED.outputs, exact=False)
    assert [
        field.name for field in complete_config(config('input { name: "B" }'), graph, 4).input
    ] == ["B"]
    assert [field.name for field in complete_config(config(), graph, 4).input] == ["A", "B"]


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ('input { name: "A" dims: 3 }', 4),
        ('input { name: "A" dims: [-1, 3] }', 0),
        ('output { name: "C" dims: [-1, 2] }', 4),
        ('output { name: "C" dims: [-1, -1, 2] }', 0),
        ('input { name: "A" dims: 3 reshape { shape: [1, 3] } }', 0),
        ('input { name: "A" dims: [-1, 3] allow_ragged_batch: true }', 4),
        ('input { name: "A" } output { name: "C" dims: [-1, -1, 2] }', 0),
        ('input { name: "stranger" dims: [1, 2, 3] }', 4),
    ],
)
def test_configured_dimensions_determine_batching(text, size):
    assert complete_config(config(text), BATCHED, 4).max_batch_size == size


def test_dimensions_that_contradict_each_other_are_refused():
    with pytest.raises(Internal) as caught:
        complete_config(
            config('input { name: "A" dims: 3 } output { name: "C" dims: [-1, -1, 2] }'), BATCHED, 4
        )
    assert caught.value.message == (
        "unable to autofill for 'm', model tensor configurations are contradicting each other in terms of whether batching is supported"
    )


def test_a_tensor_of_unknown_rank_must_be_configured():
    with pytest.raises(InvalidArgument) as caught:
        complete_config(config(), UNKNOWN, 4)
    assert caught.value.message == (
        "Unable to autofill for 'm': the rank of model tensor 'A' is 0 and dimensions are not defined"
    )
    assert fields(complete_config(config('input { name: "A" dims: [2] }'), UNKNOWN, 4))[0] == (
        "A",
        "INT8",
        [2],
    )


def test_the_input_configuration_is_not_modified():
    given_config = config()
    complete_config(given_config, BATCHED, 4)
    assert given_config == config()


@pytest.mark.parametrize(
    ("text", "needed"),
    [
        ("", True),
        ('input { name: "A" data_type: TYPE_INT8 dims: 1 }', True),
        (
            'input { name: "A" data_type: TYPE_INT8 dims: 1 } output { name: "B" data_type: TYPE_INT8 dims: 1 }',
            False,
        ),
        ('input { name: "A" data_type: TYPE_INT8 dims: 1 } output { name: "B" dims: 1 }', True),
        (
            'input { name: "A" data_type: TYPE_INT8 } output { name: "B" data_type: TYPE_INT8 dims: 1 }',
            True,
        ),
    ],
)
def test_only_a_complete_configuration_needs_no_completion(text, needed):
    assert needs_completion(config(text)) is needed


@given(inputs=tensors, outputs=tensors, default=st.integers(0, 8), exact=st.booleans())
def test_a_completed_configuration_always_fits_its_model(inputs, outputs, default, exact):
    signature = Signature(inputs, outputs, exact=exact)
    check_config(complete_config(config(), signature, default), signature)
