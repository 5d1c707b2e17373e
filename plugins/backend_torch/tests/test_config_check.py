from __future__ import annotations

import pytest
from google.protobuf import text_format

from tritonpy import Code, TritonError
from tritonpy_backend_torch.config_check import check_config
from tritonpy_backend_torch.signature import Signature, TensorInfo, TensorSpec
from tritonpy_protos.model_config_pb2 import ModelConfig

KNOWN = Signature(
    (TensorSpec(("x",), TensorInfo("FP32", (-1, 3))),),
    (TensorSpec(("y",), TensorInfo("FP32", (-1,))),),
    8,
)
FREE = Signature((TensorSpec(("x",)), TensorSpec(("mask",), required=False)), has_free_names=True)
GOOD = """
    name: "m" max_batch_size: 4 input { name: "x" data_type: TYPE_FP32 dims: 3 }
    output { name: "y" data_type: TYPE_FP32 dims: 1 reshape { } }
"""


def parsed(text):
    return text_format.Parse(text, ModelConfig())


def refusal(text, signature=KNOWN):
    with pytest.raises(TritonError) as refused:
        check_config(parsed(text), signature)
    return refused.value


@pytest.mark.parametrize("signature", [KNOWN, FREE, Signature((), has_free_names=True)])
def test_a_matching_configuration_is_accepted(signature):
    check_config(parsed(GOOD), signature)


def test_a_scalar_has_one_element_without_batching():
    scalar = Signature(
        (TensorSpec(("x",), TensorInfo("FP32", ())),), (TensorSpec(("y",), TensorInfo("FP32", ())),)
    )
    check_config(
        parsed(
            GOOD.replace("max_batch_size: 4", "")
            .replace("dims: 3", "dims: 1")
            .replace("reshape { }", "")
        ),
        scalar,
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("TYPE_FP32 dims: 3", "TYPE_INT8 dims: 3", "unable to load model 'm', configuration expects datatype TYPE_INT8 for input 'x', model provides TYPE_FP32"),
        ("TYPE_FP32 dims: 1", "TYPE_FP64 dims: 1", "unable to load model 'm', configuration expects datatype TYPE_FP64 for output 'y', model provides TYPE_FP32"),
        ("dims: 3", "dims: 4", "model 'm', tensor 'x': the model expects 2 dimensions (shape [-1,3]) but the model configuration specifies 2 dimensions (an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, making complete shape [-1,4])"),
        ("reshape { }", "", "model 'm', tensor 'y': the model expects 1 dimensions (shape [-1]) but the model configuration specifies 2 dimensions (an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, making complete shape [-1,1])"),
        ("max_batch_size: 4", "max_batch_size: 9", "unable to load model 'm', max_batch_size is 9, the model was exported for 8 rows at most"),
        ("input {", 'input { name: "z" data_type: TYPE_FP32 dims: 3 } input {', "unable to load model 'm', configuration expects 2 inputs, model provides 1"),
        ("TYPE_FP32 dims: 3", "TYPE_INVALID dims: 3", "unsupported datatype TYPE_INVALID for input 'x' for model 'm'"),
        ("TYPE_FP32 dims: 3", "TYPE_STRING dims: 3", "Triton only supports 1 dimensional List of String as input for 'x' for model 'm'"),
    ],
)  # fmt: skip
def test_a_mismatch_is_rejected_with_tritons_text(old, new, message):
    assert refusal(GOOD.replace(old, new)).message.startswith(message)  # a correction may follow


@pytest.mark.parametrize("what", ["input", "output"])
def test_a_model_without_tensors_is_refused(what):
    config = parsed(GOOD)
    config.ClearField(what)
    error = refusal(text_format.MessageToString(config))
    assert error.message == (
        f"model configuration must contain at least one {what}, none were specified."
        f" The file does not describe them: config.pbtxt needs each {what} with name, data_type and dims"
    )
    assert error.code is Code.INTERNAL


def test_a_model_with_a_fixed_first_dimension_has_no_batches():
    fixed = Signature((TensorSpec(("x",), TensorInfo("FP32", (2, 3))),), KNOWN.outputs)
    assert refusal(GOOD, fixed).message == (
        "model 'm', tensor 'x': for the model to support batching the shape should have at least 1 dimension and the first dimension "
        "must be -1; but shape expected by the model is [2,3]"
    )


def test_texts_have_one_dimension():
    texts = GOOD.replace("max_batch_size: 4", "").replace(
        "TYPE_FP32 dims: 3", "TYPE_STRING dims: -1"
    )
    check_config(parsed(texts), FREE)
    assert refusal(texts.replace("dims: -1", "dims: [1, 1]"), FREE).code is Code.INTERNAL


def test_an_argument_with_a_default_is_optional():
    two = 'input { name: "mask" data_type: TYPE_BOOL dims: 3 } '
    check_config(parsed(GOOD + two), FREE)
    assert (
        "expects 3 inputs, model provides 2"
        in refusal(GOOD + two + two.replace("mask", "z"), FREE).message
    )
    nothing = FREE.__class__((TensorSpec(("a",)), TensorSpec(("b",))), has_free_names=True)
    assert "expects 1 inputs, model provides 2" in refusal(GOOD, nothing).message


def test_ragged_and_batch_outputs_are_not_compared():
    ragged = GOOD.replace("dims: 3", "dims: -1 allow_ragged_batch: true")
    ragged += (
        'batch_output { target_name: "y" kind: BATCH_SCATTER_WITH_INPUT_SHAPE source_input: "x" }'
    )
    check_config(parsed(ragged.replace("dims: 1 reshape { }", "dims: [1, 2, 3]")), KNOWN)
