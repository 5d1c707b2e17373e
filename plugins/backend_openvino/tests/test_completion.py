from __future__ import annotations

import pytest
from google.protobuf import text_format

from tritonpy import InvalidArgument
from tritonpy_backend_openvino.completion import completed, needs_completion
from tritonpy_backend_openvino.signature import Signature, TensorInfo
from tritonpy_protos.model_config_pb2 import ModelConfig

OPEN = Signature({"A": TensorInfo(0, "FP32", (-1, 3))}, {"B": TensorInfo(0, "INT64", (-1,))})
FIXED = Signature({"A": TensorInfo(0, "FP32", (1, 3))}, {"B": TensorInfo(0, "FP32", (1, 3))})
IMAGES = Signature(
    {"A": TensorInfo(0, "FP32", (1, 3, 8, 8), layout="[N,C,H,W]")}, {"B": TensorInfo(0, "FP32", (1, 5), layout="[N,C]")}
)
SCALAR = Signature({"A": TensorInfo(0, "FP32", ())}, {"B": TensorInfo(0, "FP32", (2,))})
A = 'input { name: "A" data_type: TYPE_FP32 dims: 3 }'
B = 'output { name: "B" data_type: TYPE_FP32 dims: 3 }'


def config(text=""):
    return text_format.Parse('name: "m" ' + text, ModelConfig())


def check(signature, expected, given="", default=4):
    assert completed(config(given), signature, default) == config(expected)


def test_an_open_first_dimension_is_the_batch():
    check(
        OPEN,
        """max_batch_size: 4 dynamic_batching {} input { name: "A" data_type: TYPE_FP32 dims: 3 }
        output { name: "B" data_type: TYPE_INT64 dims: 1 reshape {} }""",
    )


def test_a_layout_tells_the_batch_and_the_format():
    check(
        IMAGES,
        """max_batch_size: 4 dynamic_batching {}
        input { name: "A" data_type: TYPE_FP32 dims: [3, 8, 8] format: FORMAT_NCHW } output { name: "B" data_type: TYPE_FP32 dims: 5 }""",
    )


def test_a_model_that_does_not_batch_is_described_whole():
    check(
        FIXED,
        """input { name: "A" data_type: TYPE_FP32 dims: [1, 3] } output { name: "B" data_type: TYPE_FP32 dims: [1, 3] }""",
    )


def test_a_scalar_is_one_element():
    check(
        SCALAR,
        """input { name: "A" data_type: TYPE_FP32 dims: 1 } output { name: "B" data_type: TYPE_FP32 dims: 2 }""",
    )


@pytest.mark.parametrize(("default", "size"), [(32, 32), (1, 1), (0, 1)])
def test_the_default_batch_size_is_at_least_one_and_batching_needs_two(default, size):
    found = completed(config(), OPEN, default)
    assert found.max_batch_size == size
    assert (found.WhichOneof("scheduling_choice") is not None) == (size > 1)


def test_a_batch_size_that_is_given_is_kept():
    found = completed(config("max_batch_size: 7 sequence_batching {}"), OPEN, 4)
    assert found.max_batch_size == 7
    assert found.WhichOneof("scheduling_choice") == "sequence_batching"


def test_a_batch_size_is_believed_where_the_model_says_nothing_of_batches():
    check(
        FIXED,
        """max_batch_size: 2 input { name: "A" data_type: TYPE_FP32 dims: 3 } output { name: "B" data_type: TYPE_FP32 dims: 3 }""",
        "max_batch_size: 2",
    )


def test_what_is_given_is_not_described_again():
    found = completed(config(A), FIXED, 4)
    assert found == config(A + 'output { name: "B" data_type: TYPE_FP32 dims: [1, 3] }')


def test_what_the_server_keeps_of_a_sequence_is_no_business_of_clients():
    signature = Signature(
        {**OPEN.inputs, "START": TensorInfo(1, "FP32", (-1, 1)), "OLD": TensorInfo(2, "FP32", (-1, 1))},
        {**OPEN.outputs, "NEW": TensorInfo(1, "FP32", (-1, 1))},
    )
    sequence = """sequence_batching { control_input { name: "START" control { fp32_false_true: [0, 1] } }
        state { input_name: "OLD" output_name: "NEW" data_type: TYPE_FP32 dims: 1 } }"""
    found = completed(config(sequence), signature, 4)
    assert ([item.name for item in found.input], [item.name for item in found.output]) == (["A"], ["B"])


def test_a_tensor_of_any_rank_must_be_described_by_hand():
    with pytest.raises(
        InvalidArgument, match="the number of dimensions of 'A' open: the configuration must give its dims"
    ):
        completed(config(), Signature({"A": TensorInfo(0, "FP32", None)}, OPEN.outputs), 4)


@pytest.mark.parametrize(
    ("given", "needed"),
    [("", True), (A, True), (B, True), (A + B, False), ('batch_input { target_name: "A" }' + B, False)],
)
def test_only_what_lacks_something_is_completed(given, needed):
    assert needs_completion(config(given)) == needed
