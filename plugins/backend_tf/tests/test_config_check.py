from __future__ import annotations

import pytest
from google.protobuf import text_format

from tritonpy import Internal, InvalidArgument, TritonError
from tritonpy_backend_tf.config_check import check_config
from tritonpy_backend_tf.signature import Signature, TensorInfo
from tritonpy_protos.model_config_pb2 import ModelConfig


def info(datatype, *dims):
    return TensorInfo(datatype, dims, "t:0")


MODEL = Signature(
    {"IN": info("FP32", -1, 3), "FLAG": info("INT32", -1, 1)}, {"OUT": info("FP32", -1, 2)}
)
IN = 'input { name: "IN" data_type: TYPE_FP32 dims: 3 }'
FLAG = 'input { name: "FLAG" data_type: TYPE_INT32 dims: 1 }'
OUT = 'output { name: "OUT" data_type: TYPE_FP32 dims: 2 }'
GRAPH = Signature(
    MODEL.inputs, MODEL.outputs, {"MAYBE": info("FP32", 1)}, {"inner": info("FP64", 7)}, exact=False
)


def refused(text, model=MODEL, batch=4):
    with pytest.raises(TritonError) as caught:
        check_config(
            text_format.Parse(f'name: "m" max_batch_size: {batch} {text}', ModelConfig()), model
        )
    return caught.value


def accepted(text, model=MODEL, batch=4):
    check_config(
        text_format.Parse(f'name: "m" max_batch_size: {batch} {text}', ModelConfig()), model
    )


def control(name="FLAG", kind="int32_false_true: [0, 1]"):
    return f'sequence_batching {{ control_input {{ name: "{name}" control {{ kind: CONTROL_SEQUENCE_START {kind} }} }} }}'


def test_a_matching_configuration_is_accepted():
    accepted(IN + FLAG + OUT)
    accepted(IN + OUT + control())
    accepted(IN + FLAG, MODEL)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (IN.replace("IN", "X") + FLAG + OUT, "unexpected inference input 'X', allowed inputs are: FLAG, IN"),
        (IN + FLAG + OUT.replace("OUT", "Y"), "unexpected inference output 'Y', allowed outputs are: OUT"),
        (IN + OUT, "unable to load model 'm', configuration expects 1 inputs, model provides 2"),
        (
            IN.replace("FP32", "FP16") + FLAG + OUT,
            "unable to load model 'm', configuration expects datatype TYPE_FP16 for input 'IN', model provides TYPE_FP32",
        ),
        (
            IN + FLAG + OUT.replace("FP32", "STRING"),
            "unable to load model 'm', configuration expects datatype TYPE_STRING for output 'OUT', model provides TYPE_FP32",
        ),
        (
            IN.replace("TYPE_FP32", "TYPE_INVALID") + FLAG + OUT,
            "unsupported datatype 'TYPE_INVALID' for input 'IN' for model 'm'",
        ),
        (
            IN.replace("dims: 3", "dims: 4") + FLAG + OUT,
            ("model 'm', tensor 'IN': the model expects 2 dimensions (shape [-1,3]) but the model configuration specifies 2 dimensions (an initial"
            " batch dimension because max_batch_size > 0 followed by the explicit tensor shape, making complete shape [-1,4])"),
        ),
        (
            IN + FLAG + OUT.replace("dims: 2", "dims: -1"),
            ("model 'm', tensor 'OUT': the model expects 2 dimensions (shape [-1,2]) but the model configuration specifies 2 dimensions (an initial"
            " batch dimension because max_batch_size > 0 followed by the explicit tensor shape, making complete shape [-1,-1])"),
        ),
        (
            IN.replace("dims: 3", "dims: 3 optional: true") + FLAG + OUT,
            "unable to load model 'm', input 'IN' is optional in the configuration, but required by the model",
        ),
        (
            IN.replace("dims: 3", "dims: -1 allow_ragged_batch: true") + FLAG + OUT,
            "unable to load model 'm', configuration expects model provides input with shape [-1]  for ragged input 'IN', model provides [-1,3]",
        ),
    ],
)  # fmt: skip
def test_a_mismatch_is_rejected_with_tritons_text(text, message):
    error = refused(text)
    assert type(error) is InvalidArgument
    assert error.message.startswith(message)  # a correction may follow


def test_without_batching_the_dimensions_are_the_models():
    accepted(
        IN.replace("dims: 3", "dims: [7, 3]")
        + FLAG.replace("dims: 1", "dims: [7, 1]")
        + OUT.replace("dims: 2", "dims: [-1, 2]"),
        batch=0,
    )
    assert refused(IN + FLAG + OUT, batch=0).message == (
        "model 'm', tensor 'IN': the model expects 2 dimensions (shape [-1,3]) but the model configuration specifies 1 dimensions (shape [3]). "
        "They have 2 dimensions in the model and 1 in the configuration: write dims: [ -1, 3 ]"
    )


def test_a_model_whose_first_dimension_is_fixed_cannot_batch():
    model = Signature({"IN": info("FP32", 1, 3)}, {"OUT": info("FP32", -1, 2)})
    assert refused(IN + OUT, model).message == (
        "model 'm', tensor 'IN': for the model to support batching the shape should have at least 1 dimension and the first dimension"
        " must be -1; but shape expected by the model is [1,3]"
    )


def test_a_scalar_has_one_element_without_batching():
    model = Signature({"IN": info("FP32")}, {"OUT": info("FP32")})
    accepted(
        IN.replace("dims: 3", "dims: [1, 1]") + OUT.replace("dims: 2", "dims: 1"), model, batch=0
    )
    assert refused(IN + OUT, model, batch=0).message == (
        "unable to load model 'm', scalar tensor 'IN', should only provide 1 in the model configuration when the model doesn't support batching."
        " Model configuration provided: [3]."
    )


def test_a_tensor_of_unknown_rank_has_the_configured_shape():
    model = Signature(
        {"IN": TensorInfo("FP32", None, "t:0")}, {"OUT": TensorInfo("FP32", None, "t:0")}
    )
    accepted(IN + OUT, model)
    accepted(IN + OUT, model, batch=0)


def test_a_ragged_input_is_one_dimension_of_the_model():
    model = Signature(
        {"IN": info("FP32", -1), "FLAG": info("INT32", -1)}, {"OUT": info("FP32", -1, 2)}
    )
    text = IN.replace("dims: 3", "dims: -1 allow_ragged_batch: true") + OUT
    accepted(
        text + 'batch_input { target_name: "FLAG" data_type: TYPE_INT32 source_input: "IN" }', model
    )
    error = refused(
        text + 'batch_input { target_name: "FLAG" data_type: TYPE_FP32 source_input: "IN" }', model
    )
    assert error.message == (
        "unable to load model 'm', configuration expects datatype TYPE_FP32 for batch input 'FLAG', model provides TYPE_INT32"
    )


def test_a_batch_output_has_the_shape_of_its_source():
    batch_output = 'batch_output { target_name: "OUT" kind: BATCH_SCATTER_WITH_INPUT_SHAPE source_input: "IN" }'
    accepted(IN + FLAG + OUT.replace("dims: 2", "dims: -1") + batch_output)


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        (control("X"), Internal, "configuration specified sequence control 'X', but model does not provide that input"),
        (
            control("IN", "fp32_false_true: [0, 1]"), InvalidArgument,
            ("unable to load model 'm', sequence control 'IN': model 'm', tensor 'IN': the model expects 2 dimensions (shape [-1,3]) but the model"
            " configuration specifies 2 dimensions (an initial batch dimension because max_batch_size > 0 followed by the explicit tensor"
            " shape, making complete shape [-1,1])"),
        ),
        (
            control(kind="bool_false_true: [false, true]"), InvalidArgument,
            "unable to load model 'm', sequence control 'FLAG': the model expects TYPE_INT32 but the model configuration specifies data-type TYPE_BOOL",
        ),
    ],
)  # fmt: skip
def test_controls_of_sequences_are_checked_first(text, kind, message):
    error = refused(IN + OUT + text)
    assert type(error) is kind
    assert error.message.startswith(message)  # a correction may follow


def test_states_of_sequences_have_the_types_of_the_model():
    state = 'sequence_batching { state { input_name: "FLAG" output_name: "OUT" data_type: TYPE_INT32 dims: 1 } }'
    assert refused(IN + state).message == (
        "unable to load model 'm', configuration expects datatype TYPE_INT32 for output state 'OUT', model provides TYPE_FP32"
    )
    assert (
        refused(IN + state.replace("FLAG", "X")).message
        == "unexpected inference input 'X', allowed inputs are: FLAG, IN"
    )


def test_a_graph_without_a_signature_is_checked_by_names_and_types():
    accepted(
        'input { name: "IN" data_type: TYPE_FP32 dims: 99 } output { name: "inner" data_type: TYPE_FP64 dims: 1 }',
        GRAPH,
    )
    accepted(
        IN + FLAG + 'input { name: "MAYBE" data_type: TYPE_FP32 dims: 1 optional: true }' + OUT,
        GRAPH,
    )
    assert refused(IN + FLAG + control("MAYBE", "fp32_false_true: [0, 1]"), GRAPH).message == (
        "unable to load model 'm', configuration expects 3 inputs, model provides at most 2"
    )
    assert refused(IN.replace("FP32", "INT8"), GRAPH).message == (
        "unable to load model 'm', configuration expects datatype TYPE_INT8 for input 'IN', model provides TYPE_FP32"
    )
