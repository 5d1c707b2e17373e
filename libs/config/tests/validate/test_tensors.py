from __future__ import annotations

import pytest
from google.protobuf import text_format
from hypothesis import given
from hypothesis import strategies as st

from tritonpy_config.validate.tensors import tensor_problems
from tritonpy_protos.model_config_pb2 import ModelConfig

SIZED = 'name: "x" data_type: TYPE_FP32'
SOUND = SIZED + " dims: 3"


def problems(text, size=8, platform=""):
    config = text_format.Parse(text, ModelConfig(name="m", max_batch_size=size, platform=platform))
    return [(each.path, each.text) for each in tensor_problems(config)]


@pytest.mark.parametrize(
    "tensor",
    [
        SOUND,
        SIZED + " dims: [-1, 4, 1]",
        SIZED + " dims: 1 reshape { shape: [] }",
        SIZED + " dims: [4, 2] reshape { shape: [2, 2, 2] }",
        SIZED + " dims: [2, 4, -1, 6] reshape { shape: [8, -1, 1, 6] }",
    ],
)
def test_valid_tensors_have_no_problems(tensor):
    assert problems(f"input {{ {tensor} }} output {{ {tensor} }}") == []


RULE = "must be integer >= 1, or -1 to indicate a variable-size dimension for m"
BIG = 1 << 62
CASES = [
    ("dims: 3 data_type: TYPE_FP32", "", "model {label} must specify 'name' for m"),
    ('name: "x" dims: 3', "", "model {label} 'x' must specify 'data_type' for m"),
    (SIZED, "", "model {label} 'x' must specify 'dims' for m"),
    (SIZED + " dims: [3, 0]", ".dims[1]", "model {label} 'x' dimension " + RULE),
    (SIZED + " dims: -2", ".dims[0]", "model {label} 'x' dimension " + RULE),
    (
        SOUND + " reshape { shape: [3, 0] }",
        ".reshape.shape[1]",
        "model {label} 'x' reshape dimensions " + RULE,
    ),
    (
        SOUND + " reshape { shape: [4] }",
        ".reshape",
        "model {label} 'x' has different size for dims and reshape for m",
    ),
    (
        SOUND + " reshape { shape: [] }",
        ".reshape",
        "model {label} 'x' has different size for dims and reshape for m",
    ),
    (
        SIZED + " dims: [-1, 3] reshape { shape: [3] }",
        ".reshape",
        "model {label} 'x' has different size for dims and reshape for m",
    ),
    (
        SIZED + " dims: [-1, 3] reshape { shape: [-1, 4] }",
        ".reshape",
        "model {label} 'x' has different size for dims and reshape for m",
    ),
    (
        SIZED + " dims: [-1, 3] reshape { shape: [-1, -1, 3] }",
        ".reshape",
        "model {label} 'x' has different number of variable-size dimensions for dims and reshape for m",
    ),
    (
        SIZED + f" dims: [{BIG}, 2] reshape {{ shape: [2, {BIG}] }}",
        "",
        "element count for tensor 'x dims' exceeds maximum size of 9223372036854775807 for m",
    ),
    (
        SOUND + " is_shape_tensor: true",
        ".is_shape_tensor",
        "shape tensors are only supported for TensorRT platform for m",
    ),
    (
        SOUND + " is_non_linear_format_io: true",
        ".is_non_linear_format_io",
        "Non-linear IO format is only supported for the TensorRT platform for m",
    ),
]


@pytest.mark.parametrize("label", ["input", "output"])
@pytest.mark.parametrize(("tensor", "path", "expected"), CASES)
def test_an_invalid_tensor_is_reported(label, tensor, path, expected):
    assert problems(f"{label} {{ {tensor} }}") == [
        (f"{label}[0]{path}", expected.replace("{label}", label))
    ]


def test_a_scalar_needs_a_batch_dimension():
    expected = "model input 'x' cannot have empty reshape for non-batching model as scalar tensors are not supported for m"
    assert problems(f"input {{ {SIZED} dims: 1 reshape {{}} }}", size=0) == [
        ("input[0].reshape", expected)
    ]


@pytest.mark.parametrize("layout", ["FORMAT_NHWC", "FORMAT_NCHW"])
def test_an_image_has_three_dimensions(layout):
    found = problems(f"input {{ {SIZED} dims: [3, 4] format: {layout} }}")
    assert found == [("input[0].format", "model input NHWC/NCHW require 3 dims for m")]
    assert problems(f"input {{ {SIZED} dims: [3, 4, 5] format: {layout} }}") == []


def test_tensorrt_takes_shape_tensors_and_non_linear_formats():
    text = (
        f"input {{ {SIZED} dims: [3, 4, 5] is_shape_tensor: true is_non_linear_format_io: true }}"
    )
    assert problems(text, platform="tensorrt_plan") == []
    found = problems(
        f"output {{ {SOUND} is_non_linear_format_io: true }}", platform="tensorrt_plan"
    )
    assert found == [
        ("output[0].is_non_linear_format_io", "Non-linear IO format output requires 3 dims for m")
    ]


def test_a_duplicate_input_is_reported():
    found = problems(f"input [{{ {SOUND} }}, {{ {SOUND} }}]")
    assert found == [("input[1].name", "model input 'x' is specified more than once for m")]


def test_every_problem_is_reported_inputs_first():
    found = problems(f'output {{ {SIZED} }} input [{{ name: "a" dims: [0, -2] }}, {{ {SIZED} }}]')
    assert [path for path, _ in found] == [
        "input[0]",
        "input[0].dims[0]",
        "input[0].dims[1]",
        "input[1]",
        "output[0]",
    ]


@given(st.lists(st.integers(1, 9) | st.just(-1), min_size=1, max_size=5), st.data())
def test_any_regrouping_between_variable_dimensions_is_a_valid_reshape(dims, data):
    shape = []
    for size in dims:
        if size > 0 and data.draw(st.booleans()):
            shape.append(1)
        shape.append(size)
    text = f"input {{ {SIZED} dims: {dims} reshape {{ shape: {shape} }} }}"
    assert problems(text) == []
