"""The bad models and the error texts of their loads."""

from __future__ import annotations

from tests.frameworks.bad_models import (
    BadModel,
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

BAD_MODELS = {
    # truncated files
    "truncated_onnx": BadModel("digits_onnx", truncated("model.onnx"), ("model.onnx",)),
    "truncated_torchscript": BadModel("digits_torchscript", truncated("model.pt"), ("model.pt",)),
    "truncated_exported": BadModel("digits_exported", truncated("model.pt2"), ("model.pt2",)),
    "truncated_savedmodel": BadModel("digits_savedmodel", truncated(GRAPH), ("savedmodel",)),
    "truncated_graphdef": BadModel(
        "digits_graphdef", truncated("model.graphdef"), ("model.graphdef",)
    ),
    "truncated_keras": BadModel("digits_keras", truncated("model.keras"), ("model.keras",)),
    "truncated_openvino": BadModel("digits_openvino", truncated("model.xml"), ("model.xml",)),
    "truncated_weights_openvino": BadModel("digits_openvino", truncated("model.bin"), ("model",)),
    "truncated_transformer": BadModel(
        "encoder_transformer", truncated("model/model.bin"), ("model.bin",)
    ),
    # missing weights
    "weightless_onnx": BadModel("digits_onnx", onnx_without_its_weights, ("weights.bin",)),
    "weightless_torchscript": BadModel(
        "digits_torchscript", member("model.pt", "data/0", lambda _old: None), ("data/0",)
    ),
    "weightless_exported": BadModel(
        "digits_exported", member("model.pt2", "weight_0", lambda _old: None), ("model.pt2",)
    ),
    "weightless_savedmodel": BadModel(
        "digits_savedmodel", without("model.savedmodel/variables"), ("variables",)
    ),
    "weightless_keras": BadModel(
        "digits_keras", member("model.keras", ".h5", lambda _old: None), ("model.keras",)
    ),
    "weightless_openvino": BadModel(
        "digits_openvino", without("model.bin"), ("bin file", "model.xml")
    ),
    "weightless_transformer": BadModel(
        "encoder_transformer", without("model/model.bin"), ("model.bin",), 'backend: "transformer"'
    ),
    # unknown versions of the format or its operators
    "opset_onnx": BadModel("digits_onnx", onnx_opset, ("opset|999",)),
    "opset_openvino": BadModel(
        "digits_openvino",
        replaced("model.xml", b'version="11"', b'version="99"'),
        ("model.xml", "correct"),
    ),
    "opset_exported": BadModel(
        "digits_exported",
        member("model.pt2", "model.json", lambda old: old.replace(b'"major": ', b'"major": 99')),
        ("model.pt2", "version"),
    ),
    # unknown operators
    "operator_onnx": BadModel("digits_onnx", onnx_custom_operator, ("NoSuchOperator",)),
    "operator_torchscript": BadModel(
        "digits_torchscript",
        member("model.pt", ".py", lambda old: old.replace(b"torch.relu(", b"ops.nosuch.relu(")),
        ("nosuch",),
    ),
    "operator_exported": BadModel(
        "digits_exported",
        member(
            "model.pt2", "model.json", lambda old: old.replace(b"ops.aten.relu", b"ops.nosuch.relu")
        ),
        ("nosuch",),
    ),
    "operator_savedmodel": BadModel(
        "digits_savedmodel", replaced(GRAPH, b"Conv2D", b"NoSuch"), ("NoSuch",)
    ),
    "operator_graphdef": BadModel(
        "digits_graphdef", replaced("model.graphdef", b"Conv2D", b"NoSuch"), ("NoSuch",)
    ),
    "operator_openvino": BadModel(
        "digits_openvino",
        replaced("model.xml", b'type="Convolution"', b'type="NoSuchOperation"'),
        ("NoSuchOperation",),
    ),
    # mismatched configurations
    "type_onnx": BadModel("digits_onnx", nothing, WRONG_TYPE, 'backend: "onnxruntime"' + TENSORS),
    "type_exported": BadModel(
        "digits_exported", nothing, WRONG_TYPE, 'backend: "pytorch"' + TENSORS
    ),
    "type_savedmodel": BadModel(
        "digits_savedmodel", nothing, WRONG_TYPE, 'platform: "tensorflow_savedmodel"' + TENSORS
    ),
    "type_graphdef": BadModel(
        "digits_graphdef", nothing, WRONG_TYPE, 'platform: "tensorflow_graphdef"' + TENSORS
    ),
    "type_keras": BadModel(
        "digits_keras",
        nothing,
        WRONG_TYPE,
        'backend: "tensorflow" default_model_filename: "model.keras"' + TENSORS,
    ),
    "type_openvino": BadModel(
        "digits_openvino", nothing, WRONG_TYPE, 'backend: "openvino"' + TENSORS
    ),
    "type_transformer": BadModel(
        "encoder_transformer",
        nothing,
        ("TYPE_FP32|FP32", "TYPE_INT64|INT64", "input_ids"),
        TRANSFORMER,
    ),
    # code instead of a model
    "pickle_torchscript": BadModel("digits_torchscript", bare_pickle("model.pt"), ("model.pt",)),
    "pickle_in_torchscript": BadModel(
        "digits_torchscript", pickle_in_an_archive("model.pt"), ("model.pt",)
    ),
    "pickle_exported": BadModel("digits_exported", bare_pickle("model.pt2"), ("model.pt2",)),
    "pickle_in_exported": BadModel(
        "digits_exported", pickle_in_an_exported_program, ("model.pt2",)
    ),
    "lambda_keras": BadModel("digits_keras", keras_lambda, ("[Ll]ambda",)),
}
