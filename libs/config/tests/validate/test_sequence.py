from __future__ import annotations

import pytest
from google.protobuf import text_format

from tritonpy_config.validate.sequence import sequence_problems
from tritonpy_protos.model_config_pb2 import ModelConfig

START = "control { kind: CONTROL_SEQUENCE_START int32_false_true: [0, 1] }"
ID = "control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 }"


def problems(text):
    config = text_format.Parse(
        f"sequence_batching {{ {text} }}", ModelConfig(name="m", max_batch_size=8)
    )
    return [(each.path, each.text) for each in sequence_problems(config)]


def control(text):
    return f'control_input {{ name: "c" control {{ {text} }} }}'


@pytest.mark.parametrize(
    "text",
    [
        "",
        f'control_input [{{ name: "s" {START} }}, {{ name: "i" {ID} }}]',
        control("kind: CONTROL_SEQUENCE_END fp32_false_true: [0, 1]"),
        control("kind: CONTROL_SEQUENCE_READY bool_false_true: [false, true]"),
        control("kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_STRING"),
        "oldest { preferred_batch_size: [1, 8] }",
        "direct {}",
        "direct { minimum_slot_utilization: 1.0 }",
    ],
)
def test_valid_settings_have_no_problems(text):
    assert problems(text) == []


def test_other_schedulers_are_not_checked():
    assert list(sequence_problems(ModelConfig(name="m"))) == []


KIND = "kind: CONTROL_SEQUENCE_START"
SUBJECT = "for CONTROL_SEQUENCE_START for m"
CONTROL = "control_input[0].control[0]"
CASES = [
    (
        f"control_input {{ {START} }}",
        "control_input[0].name",
        "sequence batching control tensor must have a name for m",
    ),
    (
        f'control_input [{{ name: "c" {START} }}, {{ name: "c" {ID} }}]',
        "control_input[1].name",
        "sequence batching control tensor 'c' is specified for multiple control kinds for m",
    ),
    (
        f'control_input [{{ name: "c" {START} }}, {{ name: "d" {START} }}]',
        "control_input[1].control[0].kind",
        "sequence batching specifies multiple CONTROL_SEQUENCE_START tensors for m",
    ),
    (
        control(KIND),
        CONTROL,
        f"sequence batching must specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true' {SUBJECT}",
    ),
    (
        control(KIND + " int32_false_true: [0, 1] bool_false_true: [false, true]"),
        CONTROL,
        "sequence batching specifies more than one from 'int32_false_true', 'fp32_false_true' and 'bool_false_true' "
        + SUBJECT,
    ),
    (
        control(KIND + " int32_false_true: 1"),
        f"{CONTROL}.int32_false_true",
        f"sequence batching control 'int32_false_true' must have exactly 2 entries {SUBJECT}",
    ),
    (
        control(KIND + " fp32_false_true: [0, 1, 2]"),
        f"{CONTROL}.fp32_false_true",
        f"sequence batching control 'fp32_false_true' must have exactly 2 entries {SUBJECT}",
    ),
    (
        control(KIND + " bool_false_true: true"),
        f"{CONTROL}.bool_false_true",
        f"sequence batching control 'bool_false_true' must have exactly 2 entries {SUBJECT}",
    ),
    (
        control("kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_INT64 int32_false_true: [0, 1]"),
        CONTROL,
        (
            "sequence batching must not specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true' for "
            "CONTROL_SEQUENCE_CORRID for m"
        ),
    ),
    (
        control("kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_FP32"),
        f"{CONTROL}.data_type",
        (
            "unexpected data type for control CONTROL_SEQUENCE_CORRID for m. Allowed data types are TYPE_UINT64, TYPE_INT64, "
            "TYPE_UINT32, TYPE_INT32 and TYPE_STRING"
        ),
    ),
    (
        "oldest { preferred_batch_size: 0 }",
        "oldest.preferred_batch_size[0]",
        "sequence batching preferred batch size must be positive for m",
    ),
    (
        "oldest { preferred_batch_size: 9 }",
        "oldest.preferred_batch_size[0]",
        "sequence batching preferred batch size must be <= max batch size for m",
    ),
    (
        "direct { minimum_slot_utilization: 1.5 }",
        "direct.minimum_slot_utilization",
        "sequence batching minimum slot utilization must be in range (0.0, 1.0] for m",
    ),
    (
        "direct { minimum_slot_utilization: -0.5 }",
        "direct.minimum_slot_utilization",
        "sequence batching minimum slot utilization must be in range (0.0, 1.0] for m",
    ),
]


@pytest.mark.parametrize(("text", "path", "expected"), CASES)
def test_an_invalid_setting_is_reported(text, path, expected):
    assert problems(text) == [(f"sequence_batching.{path}", expected)]
