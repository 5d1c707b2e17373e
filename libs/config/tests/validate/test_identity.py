from __future__ import annotations

import pytest
from google.protobuf import text_format

from tritonpy_config.validate.identity import identity_problems
from tritonpy_protos.model_config_pb2 import ModelConfig

SOUND = 'name: "m" backend: "b" version_policy { all {} }'


def problems(text):
    return [
        (each.path, each.text)
        for each in identity_problems(text_format.Parse(text, ModelConfig()), "m")
    ]


@pytest.mark.parametrize(
    "text",
    [
        SOUND,
        SOUND + ' platform: "whatever"',
        SOUND.replace('"b"', '"onnxruntime"') + ' platform: "onnxruntime_onnx"',
        SOUND.replace('"b"', '"pytorch"') + ' platform: "torch_aoti"',
        SOUND.replace('backend: "b"', 'platform: "ensemble"'),
    ],
)
def test_a_valid_identity_has_no_problems(text):
    assert problems(text) == []


CASES = [
    ('backend: "b" version_policy { all {} }', "name", "model configuration must specify 'name'"),
    (
        SOUND.replace('"m"', '"n"'),
        "name",
        "unexpected directory name 'm' for model 'n', directory name must equal model name",
    ),
    ('name: "m" version_policy { all {} }', "platform", "unexpected platform type '' for m"),
    (SOUND.replace("backend", "platform"), "platform", "unexpected platform type 'b' for m"),
    (
        SOUND + ' platform: "ensemble"',
        "backend",
        "Ensemble model 'm' must have platform type 'ensemble' and empty backend type",
    ),
    (
        SOUND.replace('"b"', '"onnxruntime"') + ' platform: "tensorrt_plan"',
        "platform",
        "unexpected 'platform' and 'backend' pair, got:tensorrt_plan, onnxruntime",
    ),
    (
        SOUND + " max_batch_size: -1",
        "max_batch_size",
        "'max_batch_size' must be non-negative value for m",
    ),
    ('name: "m" backend: "b"', "version_policy", "must specify 'version policy' for m"),
]


@pytest.mark.parametrize(("text", "path", "expected"), CASES)
def test_an_invalid_identity_is_reported(text, path, expected):
    assert problems(text) == [(path, expected)]
