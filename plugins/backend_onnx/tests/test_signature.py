from __future__ import annotations

import onnxruntime
import pytest

from tritonpy import DATATYPES, Unsupported
from tritonpy_backend_onnx.signature import Signature, TensorInfo, protocol_datatype, read_signature


def read(path):
    return read_signature(
        onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    )


@pytest.mark.parametrize("datatype", DATATYPES)
def test_every_datatype_of_the_protocol_is_known(models, datatype):
    signature = read(models.identity(datatype, ["batch", 3, None]))
    assert signature.inputs == {"IN": TensorInfo(datatype, (-1, 3, -1))}
    assert signature.outputs == {"OUT": TensorInfo(datatype, (-1, 3, -1))}
    assert signature.can_batch


def test_a_scalar_has_no_dimensions_and_cannot_batch(models):
    signature = read(models.identity("FP32", []))
    assert signature.inputs["IN"].dims == ()
    assert not signature.can_batch


def test_one_fixed_first_dimension_prevents_batching():
    signature = Signature({"A": TensorInfo("FP32", (-1, 2))}, {"B": TensorInfo("FP32", (1, 2))}, {})
    assert not signature.can_batch


def test_an_input_with_a_value_is_a_default(models):
    signature = read(models.with_default())
    assert (list(signature.inputs), list(signature.defaults)) == (["IN"], ["BIAS"])


def test_an_output_that_is_no_tensor_is_refused_in_the_words_of_triton(models):
    with pytest.raises(Unsupported) as caught:
        read(models.sequence_output())
    assert (
        caught.value.message
        == "Unsupported ONNX Type 'ONNX_TYPE_SEQUENCE' for I/O 'OUT', expected 'ONNX_TYPE_TENSOR'."
    )


@pytest.mark.parametrize(
    ("onnx_type", "text"),
    [
        ("tensor(complex64)", "tensor\\(complex64\\), which"),
        ("optional(tensor(float))", "'ONNX_TYPE_UNKNOWN'"),
    ],
)
def test_an_unsupported_type_is_rejected(onnx_type, text):
    with pytest.raises(Unsupported, match=text):
        protocol_datatype("X", onnx_type)
