from __future__ import annotations

import pytest
from google.protobuf import text_format

from tritonpy_config.validate.rules import batch_tensor_problems
from tritonpy_protos.model_config_pb2 import ModelConfig

TENSORS = 'input { name: "a" } input { name: "b" } output { name: "y" }'
IN = 'target_name: "t" data_type: TYPE_INT32 '
OUT = "kind: BATCH_SCATTER_WITH_INPUT_SHAPE "


def problems(text):
    config = text_format.Parse(TENSORS + text, ModelConfig(name="m"))
    return [(each.path, each.text) for each in batch_tensor_problems(config)]


def test_valid_batch_tensors_have_no_problems():
    text = f'batch_input {{ {IN} source_input: "a" }} batch_output {{ {OUT} source_input: "a" target_name: "y" }}'
    assert problems(text) == []


@pytest.mark.parametrize(
    ("text", "path", "expected"),
    [
        (
            f"batch_input {{ {IN} }}",
            "batch_input[0].source_input",
            "batch input kind 'BATCH_ELEMENT_COUNT' expects 1 source input, got 0 for m",
        ),
        (
            f'batch_input {{ {IN} kind: BATCH_ITEM_SHAPE source_input: ["a", "b"] }}',
            "batch_input[0].source_input",
            "batch input kind 'BATCH_ITEM_SHAPE' expects 1 source input, got 2 for m",
        ),
        (
            'batch_input { target_name: "t" data_type: TYPE_INT64 source_input: "a" }',
            "batch_input[0].data_type",
            "batch input data type must be TYPE_INT32 or TYPE_FP32 for m",
        ),
        (
            f'batch_input {{ {IN} source_input: "z" }}',
            "batch_input[0].source_input[0]",
            "unknown source input name 'z' for m",
        ),
        (
            f'batch_output {{ {OUT} target_name: "y" }}',
            "batch_output[0].source_input",
            "batch output kind 'BATCH_SCATTER_WITH_INPUT_SHAPE' expects 1 source input, got 0 for m",
        ),
        (
            f'batch_output {{ {OUT} source_input: "z" target_name: "y" }}',
            "batch_output[0].source_input[0]",
            "unknown source input name 'z' for m",
        ),
        (
            f'batch_output {{ {OUT} source_input: "a" target_name: "z" }}',
            "batch_output[0].target_name[0]",
            "unknown target output name 'z' for m",
        ),
        (
            f'batch_output {{ {OUT} source_input: "a" target_name: ["y", "y"] }}',
            "batch_output[0].target_name[1]",
            "target output name 'y' can only be specified once for m",
        ),
    ],
)
def test_an_invalid_batch_tensor_is_reported(text, path, expected):
    assert problems(text) == [(path, expected)]
