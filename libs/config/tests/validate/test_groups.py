from __future__ import annotations

import pytest
from google.protobuf import text_format

from tritonpy_config.validate.rules import group_problems
from tritonpy_protos.model_config_pb2 import ModelConfig


def problems(text, gpus=(), platform=""):
    config = text_format.Parse(text, ModelConfig(name="m", platform=platform))
    return [(each.path, each.text) for each in group_problems(config, gpus, 6.0)]


@pytest.mark.parametrize(
    "text",
    [
        "instance_group { kind: KIND_CPU }",
        "instance_group { kind: KIND_MODEL }",
        "instance_group { kind: KIND_GPU gpus: [0, 1] }",
        "ensemble_scheduling {}",
    ],
)
def test_valid_groups_have_no_problems(text):
    assert problems(text, gpus=[0, 1]) == []


GROUP = "instance group g of model m"
CASES = [
    (
        "kind: KIND_MODEL gpus: 0",
        "gpus",
        f"{GROUP} has kind KIND_MODEL but specifies one or more GPUs",
    ),
    ("kind: KIND_CPU gpus: 0", "gpus", f"{GROUP} has kind KIND_CPU but specifies one or more GPUs"),
    ("kind: KIND_GPU", "kind", f"{GROUP} has kind KIND_GPU but specifies no GPUs"),
    (
        "kind: KIND_GPU gpus: [0, 5]",
        "gpus[1]",
        (
            f"{GROUP} specifies invalid or unsupported gpu id 5. GPUs with at least the minimum required CUDA compute "
            "compatibility of 6.000000 are: 0, 1"
        ),
    ),
    ("kind: KIND_AUTO", "kind", f"{GROUP} has unexpected kind KIND_AUTO"),
    (
        'kind: KIND_CPU profile: "0"',
        "profile",
        f"{GROUP} and platform specifies profile field which is only supported for TensorRT models",
    ),
]


@pytest.mark.parametrize(("group", "path", "expected"), CASES)
def test_an_invalid_group_is_reported(group, path, expected):
    found = problems(f'instance_group {{ name: "g" {group} }}', gpus=[0, 1])
    assert found == [(f"instance_group[0].{path}", expected)]


def test_a_gpu_group_needs_a_gpu():
    found = problems('instance_group { name: "g" kind: KIND_GPU }')
    assert found == [
        ("instance_group[0].kind", f"{GROUP} has kind KIND_GPU but no GPUs are available")
    ]


def test_a_model_needs_a_group():
    assert problems("") == [("instance_group", "must specify one or more 'instance group's for m")]


def test_profiles_of_tensorrt_are_numbers():
    text = 'instance_group { name: "g" kind: KIND_GPU gpus: 0 profile: ["0", "-1"] }'
    expected = (
        f"{GROUP} and platform tensorrt_plan specifies invalid profile -1. The field should contain the string "
        "representation of a non-negative integer."
    )
    assert problems(text, [0], "tensorrt_plan") == [("instance_group[0].profile[1]", expected)]
