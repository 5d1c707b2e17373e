from __future__ import annotations

import pytest
from google.protobuf import text_format

from tritonpy import InvalidArgument
from tritonpy_backend_kit.config_completion import needs_completion
from tritonpy_backend_openvino.config_completion import complete_config
from tritonpy_backend_openvino.signature import Signature, TensorInfo
from tritonpy_protos.model_config_pb2 import ModelConfig

OPEN = Signature({"A": TensorInfo(0, "FP32", (-1, 3))}, {"B": TensorInfo(0, "INT64", (-1,))})
FIXED = Signature({"A": TensorInfo(0, "FP32", (1, 3))}, {"B": TensorInfo(0, "FP32", (1, 3))})
IMAGES = Signature(
    {"A": TensorInfo(0, "FP32", (1, 3, 8, 8), layout="[N,C,H,W]")},
    {"B": TensorInfo(0, "FP32", (1, 5), layout="[N,C]")},
)
SCALAR = Signature({"A": TensorInfo(0, "FP32", ())}, {"B": TensorInfo(0, "FP32", (2,))})
A = 'input { name: "A" data_type: TYPE_FP32 dims: 3 }'
B = 'output { name: "B" data_type: TYPE_FP32 dims: 3 }'


def config(text=""):
    return text_format.Parse('name: "m" ' + text, ModelConfig())


def check(signature, expected, given="", default=4):
    assert complete_config(config(given), signature, default) == config(expected)


def test_an_open_first_dimension_is_the_batch():
    check(
        OPEN,
        """max_batch_size: 4 dynamic_batching {} input { name: "A" data_type: TYPE_FP32 dims: 3 }
        output { name: "B" data_type: TYPE_INT64 dims: 1 reshape {} }""",
    )


def test_a_layout_determines_batching_and_format():
    check(
        IMAGES,
        """max_batch_size: 4 dynamic_batching {}
        input { name: "A" data_type: TYPE_FP32 dims: [3, 8, 8] format: FORMAT_NCHW } output { name: "B" data_type: TYPE_FP32 dims: 5 }""",
    )


def test_a_model_without_batching_keeps_all_dimensions():
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
    found = complete_config(config(), OPEN, default)
    assert found.max_batch_size == size
    assert (found.WhichOneof("scheduling_choice") is not None) == (size > 1)


def test_a_given_batch_size_is_kept():
    found = complete_config(config("max_batch_size: 7 sequence_batching {}"), OPEN, 4)
    assert found.max_batch_size == 7
    assert found.WhichOneof("scheduling_choice") == "sequence_batching"


def test_a_batch_size_is_accepted_if_the_model_defines_no_batch():
    check(
        FIXED,
        """max_batch_size: 2 input { name: "A" data_type: TYPE_FP32 dims: 3 } output { name: "B" data_type: TYPE_FP32 dims: 3 }""",
        "max_batch_size: 2",
    )


def test_configured_tensors_are_unchanged():
    found = complete_config(config(A), FIXED, 4)
    assert found == config(A + 'output { name: "B" data_type: TYPE_FP32 dims: [1, 3] }')


def test_sequence_tensors_of_the_server_are_not_client_tensors():
    signature = Signature(
        {
            **OPEN.inputs,
            "START": TensorInfo(1, "FP32", (-1, 1)),
            "OLD": TensorInfo(2, "FP32", (-1, 1)),
        },
        {**OPEN.outputs, "NEW": TensorInfo(1, "FP32", (-1, 1))},
    )
    sequence = """sequence_batching { control_input { name: "START" control { fp32_false_true: [0, 1] } }
        state { input_name: "OLD" output_name: "NEW" data_type: TYPE_FP32 dims: 1 } }"""
    found = complete_config(config(sequence), signature, 4)
    assert ([item.name for item in found.input], [item.name for item in found.output]) == (
        ["A"],
        ["B"],
    )


def test_a_tensor_of_dynamic_rank_must_be_configured():
    with pytest.raises(
        InvalidArgument,
        match="the number of dimensions of 'A' is dynamic in the model: the configuration must set its dims",
    ):
        complete_config(config(), Signature({"A": TensorInfo(0, "FP32", None)}, OPEN.outputs), 4)


@pytest.mark.parametrize(
    ("given", "needed"),
    [
        ("", True),
        (A, True),
        (B, True),
        (A + B, False),
        ('batch_input { target_name: "A" }' + B, False),
    ],
)
def test_only_incomplete_configurations_need_completion(given, needed):
    assert needs_completion(config(given)) == needed
