"""The ways in which models are bad, and what their loads must say."""

from __future__ import annotations

from tests.frameworks.bad_models import (
    Damage,
    bare_pickle,
    keras_lambda,
    member,
    nothing,
    onnx_custom_operator,
    onnx_opset,
    onnx_without_its_weights,
    pickle_in_an_archive,
    pickle_in_an_exported_program,
    replaced,
    truncated,
    without,
)

TENSORS = """
max_batch_size: 8
input [{ name: "image" data_type: TYPE_INT64 dims: [64] }]
output [{ name: "scores" data_type: TYPE_FP32 dims: [10] }]
"""
TRANSFORMER = """
backend: "transformer"
max_batch_size: 8
input [{ name: "input_ids" data_type: TYPE_FP32 dims: [-1] }]
output [{ name: "embedding" data_type: TYPE_FP32 dims: [384] }]
"""
WRONG_TYPE = ("TYPE_INT64|INT64", "TYPE_FP32|FP32", "image")
GRAPH = "model.savedmodel/saved_model.pb"

DAMAGES = {
    # half a file
    "truncated_onnx": Damage("digits_onnx", truncated("model.onnx"), ("model.onnx",)),
    "truncated_torchscript": Damage("digits_torchscript", truncated("model.pt"), ("model.pt",)),
    "truncated_exported": Damage("digits_exported", truncated("model.pt2"), ("model.pt2",)),
    "truncated_savedmodel": Damage("digits_savedmodel", truncated(GRAPH), ("savedmodel",)),
    "truncated_graphdef": Damage("digits_graphdef", truncated("model.graphdef"), ("model.graphdef",)),
    "truncated_keras": Damage("digits_keras", truncated("model.keras"), ("model.keras",)),
    "truncated_openvino": Damage("digits_openvino", truncated("model.xml"), ("model.xml",)),
    "truncated_weights_openvino": Damage("digits_openvino", truncated("model.bin"), ("model",)),
    "truncated_transformer": Damage("encoder_transformer", truncated("model/model.bin"), ("model.bin",)),
    # what the weights were in is gone
    "weightless_onnx": Damage("digits_onnx", onnx_without_its_weights, ("weights.bin",)),
    "weightless_torchscript": Damage(
        "digits_torchscript", member("model.pt", "data/0", lambda _old: None), ("data/0",)
    ),
    "weightless_exported": Damage(
        "digits_exported", member("model.pt2", "weight_0", lambda _old: None), ("model.pt2",)
    ),
    "weightless_savedmodel": Damage("digits_savedmodel", without("model.savedmodel/variables"), ("variables",)),
    "weightless_keras": Damage("digits_keras", member("model.keras", ".h5", lambda _old: None), ("model.keras",)),
    "weightless_openvino": Damage("digits_openvino", without("model.bin"), ("bin file", "model.xml")),
    "weightless_transformer": Damage(
        "encoder_transformer", without("model/model.bin"), ("model.bin",), 'backend: "transformer"'
    ),
    # a version of the format, or of its operators, that is not known
    "opset_onnx": Damage("digits_onnx", onnx_opset, ("opset|999",)),
    "opset_openvino": Damage(
        "digits_openvino", replaced("model.xml", b'version="11"', b'version="99"'), ("model.xml", "correct")
    ),
    "opset_exported": Damage(
        "digits_exported",
        member("model.pt2", "model.json", lambda old: old.replace(b'"major": ', b'"major": 99')),
        ("model.pt2", "version"),
    ),
    # an operator that is not there
    "operator_onnx": Damage("digits_onnx", onnx_custom_operator, ("NoSuchOperator",)),
    "operator_torchscript": Damage(
        "digits_torchscript",
        member("model.pt", ".py", lambda old: old.replace(b"torch.relu(", b"ops.nosuch.relu(")),
        ("nosuch",),
    ),
    "operator_exported": Damage(
        "digits_exported",
        member("model.pt2", "model.json", lambda old: old.replace(b"ops.aten.relu", b"ops.nosuch.relu")),
        ("nosuch",),
    ),
    "operator_savedmodel": Damage("digits_savedmodel", replaced(GRAPH, b"Conv2D", b"NoSuch"), ("NoSuch",)),
    "operator_graphdef": Damage("digits_graphdef", replaced("model.graphdef", b"Conv2D", b"NoSuch"), ("NoSuch",)),
    "operator_openvino": Damage(
        "digits_openvino", replaced("model.xml", b'type="Convolution"', b'type="NoSuchOperation"'), ("NoSuchOperation",)
    ),
    # a configuration that says something else
    "type_onnx": Damage("digits_onnx", nothing, WRONG_TYPE, 'backend: "onnxruntime"' + TENSORS),
    "type_exported": Damage("digits_exported", nothing, WRONG_TYPE, 'backend: "pytorch"' + TENSORS),
    "type_savedmodel": Damage("digits_savedmodel", nothing, WRONG_TYPE, 'platform: "tensorflow_savedmodel"' + TENSORS),
    "type_graphdef": Damage("digits_graphdef", nothing, WRONG_TYPE, 'platform: "tensorflow_graphdef"' + TENSORS),
    "type_keras": Damage(
        "digits_keras", nothing, WRONG_TYPE, 'backend: "tensorflow" default_model_filename: "model.keras"' + TENSORS
    ),
    "type_openvino": Damage("digits_openvino", nothing, WRONG_TYPE, 'backend: "openvino"' + TENSORS),
    "type_transformer": Damage(
        "encoder_transformer",
        nothing,
        ("TYPE_FP32|FP32", "TYPE_INT64|INT64", "input_ids"),
        TRANSFORMER,
    ),
    # code instead of a model
    "pickle_torchscript": Damage("digits_torchscript", bare_pickle("model.pt"), ("model.pt",)),
    "pickle_in_torchscript": Damage("digits_torchscript", pickle_in_an_archive("model.pt"), ("model.pt",)),
    "pickle_exported": Damage("digits_exported", bare_pickle("model.pt2"), ("model.pt2",)),
    "pickle_in_exported": Damage("digits_exported", pickle_in_an_exported_program, ("model.pt2",)),
    "lambda_keras": Damage("digits_keras", keras_lambda, ("[Ll]ambda",)),
}
