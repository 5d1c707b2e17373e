from __future__ import annotations

import pytest

from tritonpy_config.folder_hints import layout_hint
from tritonpy_config.known_backends import KNOWN_FORMATS

NOT_LOOKED_FOR = (
    "'%s' does not have the expected name: rename it to '%s', or write "
    'backend: "onnxruntime" default_model_filename: "%s" in config.pbtxt'
)
HOLDS = (
    "the version folder '1' contains 'a', 'b', 'c', ...: give the model's file a known name, such as 'model.onnx', or name "
    "backend and default_model_filename in config.pbtxt"
)


@pytest.mark.parametrize(
    ("files", "hint"),
    [
        (["1/model.onnx"], ""),
        (["config.pbtxt", "1/model.savedmodel/saved_model.pb", "labels.txt"], ""),
        (
            ["model.onnx"],
            "'model.onnx' is in the model's folder: move it into a version folder, as 'm/1/model.onnx'",
        ),
        (
            ["resnet.pth"],
            "'resnet.pth' is in the model's folder: move it into a version folder, as 'm/1/model.pt'",
        ),
        ([], "it has no version folder: put the model's file into 'm/1/'"),
        (
            ["config.pbtxt", "configs/a.pbtxt"],
            "it has no version folder: put the model's file into 'm/1/'",
        ),
        (["1/"], "the version folder '1' is empty: put the model's file into it"),
        (
            ["v1/model.onnx"],
            "'v1' is not a version folder: rename it to a positive number without leading zeros, such as '1'",
        ),
        (
            ["01/model.onnx"],
            "'01' is not a version folder: rename it to a positive number without leading zeros, such as '1'",
        ),
        (
            ["2/resnet.onnx"],
            NOT_LOOKED_FOR % ("2/resnet.onnx", "2/model.onnx", "resnet.onnx"),
        ),
        (
            ["1/Model.ONNX"],
            NOT_LOOKED_FOR % ("1/Model.ONNX", "1/model.onnx", "Model.ONNX"),
        ),
        (
            ["1/d", "1/c", "1/b", "1/a"],
            HOLDS,
        ),
    ],
)
def test_a_wrong_layout_gets_a_hint(files, hint):
    assert layout_hint("m", files, KNOWN_FORMATS) == hint
