from __future__ import annotations

import pytest
from google.protobuf import text_format

from tritonpy import TritonError
from tritonpy_backend_onnx.config_check import check_config
from tritonpy_backend_onnx.signature import Signature, TensorInfo
from tritonpy_protos.model_config_pb2 import ModelConfig

BATCHED = Signature({"A": TensorInfo("FP32", (-1, 3))}, {"B": TensorInfo("FP32", (-1, 3))}, {})
OPTIONAL = Signature(
    {"A": TensorInfo("FP32", (3,))},
    {"B": TensorInfo("FP32", (3,))},
    {"BIAS": TensorInfo("FP32", (3,))},
)
SCALAR = Signature({"A": TensorInfo("FP32", ())}, {"B": TensorInfo("FP32", ())}, {})
RAGGED = Signature({"A": TensorInfo("FP32", (-1,))}, {"B": TensorInfo("FP32", (-1, 3))}, {})
MADE = Signature(
    {
        "A": TensorInfo("FP32", (-1,)),
        "N": TensorInfo("INT32", (-1,)),
        "M": TensorInfo("INT32", (-1,)),
    },
    {"B": TensorInfo("FP32", (-1, 3))},
    {},
)
SEQUENCE = Signature(
    {
        "A": TensorInfo("FP32", (-1, 3)),
        "START": TensorInfo("INT32", (-1, 1)),
        "ID": TensorInfo("UINT64", (-1, 1)),
        "SIN": TensorInfo("FP32", (-1, 2)),
    },
    {"B": TensorInfo("FP32", (-1, 3)), "SOUT": TensorInfo("FP32", (-1, 2))},
    {},
)


def tensor(kind, name, datatype="FP32", dims="3", more=""):
    return f'{kind} {{ name: "{name}" data_type: TYPE_{datatype} {" ".join(f"dims: {dim}" for dim in dims.split())} {more} }}'


A, B = tensor("input", "A"), tensor("output", "B")
START = 'control_input { name: "START" control { kind: CONTROL_SEQUENCE_START int32_false_true: [0, 1] } }'
ID = 'control_input { name: "ID" control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } }'
STATE = 'state { input_name: "SIN" output_name: "SOUT" data_type: TYPE_FP32 dims: 2 }'


RAGGED_A = tensor("input", "A", dims="-1", more="allow_ragged_batch: true")
ONE_COUNT = 'batch_input { target_name: "N" data_type: TYPE_INT32 source_input: "A" }'
COUNTS = 'batch_input { target_name: ["N", "M"] data_type: TYPE_INT32 source_input: "A" }'
COUNTS_OF_X = COUNTS.replace('"M"', '"X"')


def config(text):
    return text_format.Parse('name: "m" ' + text, ModelConfig())


@pytest.mark.parametrize(
    ("signature", "text"),
    [
        (BATCHED, f"max_batch_size: 8 {A} {B}"),
        (BATCHED, f"{tensor('input', 'A', dims='-1 3')} {tensor('output', 'B', dims='-1 3')}"),
        (BATCHED, f"{tensor('input', 'A', dims='2 3')} {tensor('output', 'B', dims='-1 3')}"),
        (
            BATCHED,
            f"max_batch_size: 8 {tensor('input', 'A', dims='1 3', more='reshape { shape: 3 }')} {B}",
        ),
        (OPTIONAL, f"{A} {tensor('input', 'BIAS', more='optional: true')} {B}"),
        (OPTIONAL, f"{A} {B}"),
        (SCALAR, f"{tensor('input', 'A', dims='1')} {tensor('output', 'B', dims='1 1')}"),
        (
            RAGGED,
            f"max_batch_size: 8 {tensor('input', 'A', dims='-1', more='allow_ragged_batch: true')} {B}",
        ),
        (MADE, f"max_batch_size: 8 {RAGGED_A} {B} {COUNTS}"),
        (SEQUENCE, f"max_batch_size: 8 {A} {B} sequence_batching {{ {START} {ID} {STATE} }}"),
        (
            BATCHED,
            f'max_batch_size: 8 {A} {tensor("output", "B", dims="7")} batch_output {{ target_name: "B" }}',
        ),
    ],
)
def test_a_matching_configuration_is_accepted(signature, text):
    check_config(config(text), signature)


CASES = [
    (BATCHED, f"{A} {tensor('input', 'C')} {B}", "unable to load model 'm', configuration expects 2 inputs, model provides 1"),
    (BATCHED, f"{tensor('input', 'X')} {B}", "unexpected inference input 'X', allowed inputs are: A"),
    (OPTIONAL, f"{tensor('input', 'X')} {B}", "unexpected inference input 'X', allowed inputs are: A, BIAS"),
    (BATCHED, f"max_batch_size: 8 {A} {tensor('output', 'X')}", "unexpected inference output 'X', allowed outputs are: B"),
    (BATCHED, f"{tensor('input', 'A', 'INT32')} {B}", "unable to load model 'm', configuration expects datatype TYPE_INT32 for input 'A', model provides TYPE_FP32"),
    (BATCHED, f"max_batch_size: 8 {A} {tensor('output', 'B', 'STRING')}", "unable to load model 'm', configuration expects datatype TYPE_STRING for output 'B', model provides TYPE_FP32"),
    (BATCHED, f"{tensor('input', 'A', 'INVALID')} {B}", "unsupported datatype TYPE_INVALID for input 'A' for model 'm'"),
    (
        BATCHED, f"max_batch_size: 8 {tensor('input', 'A', dims='4')} {B}",
        ("model 'm', tensor 'A': the model expects 2 dimensions (shape [-1,3]) but the model configuration specifies 2 dimensions "
        "(an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, making complete shape [-1,4])"),
    ),
    (
        BATCHED, f"{A} {B}",
        "model 'm', tensor 'A': the model expects 2 dimensions (shape [-1,3]) but the model configuration specifies 1 dimensions (shape [3])",
    ),
    (
        BATCHED, f"{tensor('input', 'A', dims='2 3')} {tensor('output', 'B', dims='2 3')}",
        "model 'm', tensor 'B': the model expects 2 dimensions (shape [-1,3]) but the model configuration specifies 2 dimensions (shape [2,3])",
    ),
    (
        OPTIONAL, f"max_batch_size: 8 {A} {B}",
        ("model 'm', tensor 'A': for the model to support batching the shape should have at least 1 dimension and the first "
        "dimension must be -1; but shape expected by the model is [3]"),
    ),
    (
        BATCHED, f"max_batch_size: 8 {A} {tensor('input', 'BIAS', more='optional: true')} {B}",
        "unable to load model 'm', optional input 'BIAS' is not supported for models that support batching",
    ),
    (
        SCALAR, f"{tensor('input', 'A', dims='1')} {tensor('output', 'B', dims='1 2')}",
        ("unable to load model 'm', scalar tensor 'B', should only provide 1 in the model configuration when the model doesn't "
        "support batching. Model configuration provided: [1,2]."),
    ),
    (
        MADE, f"max_batch_size: 8 {RAGGED_A} {B} {COUNTS_OF_X}",
        "unexpected inference input 'X', allowed inputs are: A, M, N",
    ),
    (
        MADE, f"max_batch_size: 8 {RAGGED_A} {B} {COUNTS.replace('INT32', 'FP32')}",
        "unable to load model 'm', configuration expects datatype TYPE_FP32 for batch input 'N', model provides TYPE_INT32",
    ),
    (
        MADE, f"max_batch_size: 8 {RAGGED_A} {B} {ONE_COUNT}",
        "unable to load model 'm', configuration expects 2 inputs, model provides 3",
    ),
    (
        BATCHED, f"max_batch_size: 8 {tensor('input', 'A', more='allow_ragged_batch: true')} {B}",
        "unable to load model 'm', configuration expects model provides input with shape [-1]  for ragged input 'A', model provides [-1,3]",
    ),
    (
        OPTIONAL, f"{A} {tensor('input', 'BIAS', more='optional: true allow_ragged_batch: true')} {B}",
        ("unable to load model 'm', configuration expects model provides input with shape [-1] for ragged input 'BIAS', which is "
        "not supported for optional input"),
    ),
    (
        SEQUENCE, f"max_batch_size: 8 {A} {B} sequence_batching {{ {START.replace('START', 'BEGIN', 1)} }}",
        "configuration specified sequence control 'BEGIN', but model does not provide that input",
    ),
    (
        SEQUENCE, f"{A} {B} sequence_batching {{ {START} }}",
        "unable to load model 'm', sequence control 'START' in model has dims [-1,1] but dims [1] is expected",
    ),
    (
        SEQUENCE, f"max_batch_size: 8 {A} {B} sequence_batching {{ {START.replace('int32', 'fp32')} }}",
        ("unable to load model 'm', sequence control 'START', the model expects data-type INT32 but the model configuration "
        "specifies data-type TYPE_FP32"),
    ),
    (
        SEQUENCE, f"max_batch_size: 8 {A} {B} sequence_batching {{ {START.replace('int32', 'bool')} }}",
        ("unable to load model 'm', sequence control 'START', the model expects data-type INT32 but the model configuration "
        "specifies data-type TYPE_BOOL"),
    ),
    (
        SEQUENCE, f"max_batch_size: 8 {A} {B} sequence_batching {{ {START} {ID} {STATE.replace('FP32', 'INT8')} }}",
        "unable to load model 'm', configuration expects datatype TYPE_INT8 for output state 'SOUT', model provides TYPE_FP32",
    ),
    (
        SEQUENCE, f"max_batch_size: 8 {A} {B} sequence_batching {{ {START} {ID} {STATE.replace('SOUT', 'S')} }}",
        "unexpected inference output 'S', allowed outputs are: B, SOUT",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("signature", "text", "message"), CASES)
def test_a_mismatch_is_rejected_with_tritons_text(signature, text, message):
    with pytest.raises(TritonError) as caught:
        check_config(config(text), signature)
    assert caught.value.message.startswith(message)  # a correction may follow
