from __future__ import annotations

import pytest
from google.protobuf import text_format

from tritonpy_config.validate.rules import warmup_problems
from tritonpy_protos.model_config_pb2 import ModelConfig


def problems(text, size=1):
    config = text_format.Parse(
        f'model_warmup {{ name: "w" batch_size: {size} inputs {{ key: "x" value {{ data_type: TYPE_FP32 {text} }} }} }}',
        ModelConfig(name="m"),
    )
    return [(each.path, each.text) for each in warmup_problems(config)]


PATH = 'model_warmup[0].inputs["x"]'


@pytest.mark.parametrize("data", ["zero_data: true", "random_data: true", 'input_data_file: "f"'])
def test_valid_samples_have_no_problems(data):
    assert problems(f"dims: [2, 3] {data}") == []


@pytest.mark.parametrize(
    ("text", "path", "expected"),
    [
        (
            "dims: [-1, 3] zero_data: true",
            f"{PATH}.dims",
            "warmup setting expects all variable-size dimensions are specified for input 'x'",
        ),
        (
            "dims: [-2, 3] zero_data: true",
            f"{PATH}.dims",
            "tensor 'x' contains an invalid dimension [-2,3]",
        ),
        (
            f"dims: [{1 << 62}, 8] zero_data: true",
            f"{PATH}.dims",
            "byte size for tensor 'x' exceeds maximum size of 9223372036854775807",
        ),
        ("dims: 3", PATH, "warmup setting expects input 'x' to have input_data_type set"),
    ],
)
def test_an_invalid_sample_is_reported(text, path, expected):
    assert problems(text) == [(path, expected)]


def test_a_sample_of_batch_size_0_is_not_checked():
    assert problems("dims: -1", size=0) == []
