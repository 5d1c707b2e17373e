from __future__ import annotations

import pytest
from google.protobuf import text_format

from tritonpy import DATATYPES, TritonError
from tritonpy_backend_openvino.config_check import check_inputs, check_outputs, is_convertible
from tritonpy_backend_openvino.signature import Signature, TensorInfo
from tritonpy_protos.model_config_pb2 import ModelConfig

BATCHED = Signature(
    {"A": TensorInfo(0, "FP32", (-1, 3), frozenset({"A", "A:0"}))},
    {"B": TensorInfo(0, "FP32", (-1, 3))},
)
FIXED = Signature({"A": TensorInfo(0, "FP32", (8, 3))}, {"B": TensorInfo(0, "FP32", (8, 3))})
SCALAR = Signature({"A": TensorInfo(0, "FP32", ())}, {"B": TensorInfo(0, "FP32", ())})
ANY_RANK = Signature({"A": TensorInfo(0, "FP32", None)}, {"B": TensorInfo(0, "FP32", None)})
SEQUENCE = Signature(
    {
        "A": TensorInfo(0, "FP32", (-1, 3)),
        "START": TensorInfo(1, "INT32", (-1, 1)),
        "OLD": TensorInfo(2, "FP32", (-1, 2)),
    },
    {"B": TensorInfo(0, "FP32", (-1, 3)), "NEW": TensorInfo(1, "FP32", (-1, 2))},
)
RAGGED = Signature(
    {"A": TensorInfo(0, "FP32", (-1,)), "N": TensorInfo(1, "INT32", (-1,))},
    {"B": TensorInfo(0, "FP32", (-1, 3))},
)


def tensor(kind, name, datatype="FP32", dims="3", more=""):
    return f'{kind} {{ name: "{name}" data_type: TYPE_{datatype} {" ".join(f"dims: {dim}" for dim in dims.split())} {more} }}'


A, B = tensor("input", "A"), tensor("output", "B")
START = 'control_input { name: "START" control { kind: CONTROL_SEQUENCE_START int32_false_true: [0, 1] } }'
STATE = 'state { input_name: "OLD" output_name: "NEW" data_type: TYPE_FP32 dims: 2 }'


def check(text, signature, reshape_inputs=False):
    config = text_format.Parse('name: "m" ' + text, ModelConfig())
    check_inputs(config, signature, reshape_inputs)
    check_outputs(config, signature)


@pytest.mark.parametrize(
    ("signature", "text"),
    [
        (BATCHED, f"max_batch_size: 8 {A} {B}"),
        (BATCHED, f"max_batch_size: 8 {tensor('input', 'A:0')} {B}"),
        (BATCHED, f"max_batch_size: 8 {tensor('input', 'A', dims='-1')} {B}"),
        (BATCHED, f"{tensor('input', 'A', dims='-1 3')} {tensor('output', 'B', dims='2 3')}"),
        (
            BATCHED,
            f"max_batch_size: 8 {tensor('input', 'A', dims='1 3', more='reshape { shape: 3 }')} {B}",
        ),
        (
            BATCHED,
            f"max_batch_size: 8 {tensor('input', 'A', 'UINT8')} {tensor('output', 'B', 'FP16')}",
        ),
        (FIXED, f"max_batch_size: 8 {A} {B}"),
        (SCALAR, f"{tensor('input', 'A', dims='1')} {tensor('output', 'B', dims='1')}"),
        (ANY_RANK, f"max_batch_size: 8 {A} {tensor('output', 'B', dims='-1 -1')}"),
        (SEQUENCE, f"max_batch_size: 8 {A} {B} sequence_batching {{ {START} {STATE} }}"),
        (
            RAGGED,
            f"""max_batch_size: 8 {tensor("input", "A", dims="-1", more="allow_ragged_batch: true")} {B}
            batch_input {{ target_name: "N" data_type: TYPE_INT32 source_input: "A" }}""",
        ),
        (
            BATCHED,
            f'max_batch_size: 8 {A} {tensor("output", "B", dims="7")} batch_output {{ target_name: "B" }}',
        ),
    ],
)
def test_a_matching_configuration_is_accepted(signature, text):
    check(text, signature)


def test_reshaped_inputs_may_have_any_shape():
    check(f"max_batch_size: 8 {tensor('input', 'A', dims='7 7')} {B}", BATCHED, reshape_inputs=True)


UNABLE = "unable to load model 'm', configuration expects "
COMPLETE = (
    "dimensions (an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, "
    "making complete shape "
)
CASES = [
    (BATCHED, f"{A} {tensor('input', 'C')} {B}", f"{UNABLE}2 inputs, model provides 1"),
    (SEQUENCE, f"{A} {B}", f"{UNABLE}1 inputs, model provides 3"),
    (
        BATCHED,
        f"{tensor('input', 'A', dims='-1 3', more='optional: true')} {B}",
        "unable to load model 'm', optional input 'A' is not supported, the model has no default value for it",
    ),
    (
        BATCHED,
        f"{tensor('input', 'X')} {B}",
        "unexpected inference input 'X', allowed inputs are: A",
    ),
    (
        BATCHED,
        f"max_batch_size: 8 {A} {tensor('output', 'X')}",
        "unexpected inference output 'X', allowed outputs are: B",
    ),
    (
        BATCHED,
        f"{tensor('input', 'A', 'INT32')} {B}",
        f"{UNABLE}datatype TYPE_INT32 for input 'A', model provides TYPE_FP32",
    ),
    (
        BATCHED,
        f"max_batch_size: 8 {A} {tensor('output', 'B', 'INT64')}",
        f"{UNABLE}datatype TYPE_INT64 for output 'B', model provides TYPE_FP32",
    ),
    (
        BATCHED,
        f"max_batch_size: 8 {tensor('input', 'A', 'STRING')} {B}",
        f"{UNABLE}datatype TYPE_STRING for input 'A', model provides TYPE_FP32",
    ),
    (
        BATCHED,
        'input { name: "A" dims: 3 }' + B,
        "unsupported datatype TYPE_INVALID for input 'A' for model 'm'",
    ),
    (
        BATCHED,
        f"max_batch_size: 8 {tensor('input', 'A', dims='4')} {B}",
        f"model 'm', tensor 'A': the model expects 2 dimensions (shape [-1,3]) but the model configuration specifies 2 {COMPLETE}[8,4])",
    ),
    (
        FIXED,
        f"max_batch_size: 4 {A} {B}",
        f"model 'm', tensor 'B': the model expects 2 dimensions (shape [8,3]) but the model configuration specifies 2 {COMPLETE}[4,3])",
    ),
    (
        FIXED,
        f"{tensor('input', 'A', dims='-1 3')} {B}",
        "model 'm', tensor 'A': the model expects 2 dimensions (shape [8,3]) but the model configuration specifies 2 dimensions (shape [-1,3])",
    ),
    (
        BATCHED,
        f"max_batch_size: 8 {A} {tensor('output', 'B', dims='3 1')}",
        f"model 'm', tensor 'B': the model expects 2 dimensions (shape [-1,3]) but the model configuration specifies 3 {COMPLETE}[8,3,1])",
    ),
    (
        SCALAR,
        f"max_batch_size: 8 {A} {B}",
        "model 'm', tensor 'A': for the model to support batching the shape should have at least 1 dimension",
    ),
    (
        SEQUENCE,
        f"max_batch_size: 8 {A} {B} sequence_batching {{ {START} {STATE.replace('NEW', 'X')} }}",
        "unexpected inference output 'X', allowed outputs are: B, NEW",
    ),
    (
        SEQUENCE,
        f"max_batch_size: 8 {A} {B} sequence_batching {{ {START.replace('int32', 'fp32')} {STATE} }}",
        f"{UNABLE}datatype TYPE_FP32 for input 'START', model provides TYPE_INT32",
    ),
]


@pytest.mark.parametrize(("signature", "text", "message"), CASES)
def test_a_mismatch_is_rejected_with_tritons_text(signature, text, message):
    with pytest.raises(TritonError) as caught:
        check(text, signature)
    assert caught.value.message.startswith(message)  # a correction may follow


@pytest.mark.parametrize("name", DATATYPES)
def test_every_type_is_convertible_to_itself(name):
    assert is_convertible(name, name)


@pytest.mark.parametrize(
    ("source", "target"),
    [("UINT8", "FP32"), ("INT32", "INT64"), ("BOOL", "FP32"), ("FP32", "FP16"), ("FP16", "FP32"), ("INT16", "FP32"),
     ("FP32", "BF16"), ("BF16", "FP64"), ("UINT8", "BF16"), ("INT32", "FP64")],
)  # fmt: skip
def test_lossless_conversions_are_allowed(source, target):
    assert is_convertible(source, target)


@pytest.mark.parametrize(
    ("source", "target"),
    [("FP32", "INT32"), ("INT32", "FP32"), ("INT64", "INT32"), ("UINT8", "INT8"), ("BYTES", "FP32"), ("FP32", "BYTES"),
     ("BF16", "INT8"), ("INT16", "BF16"), ("FP32", "BOOL")],
)  # fmt: skip
def test_lossy_conversions_are_not_allowed(source, target):
    assert not is_convertible(source, target)
