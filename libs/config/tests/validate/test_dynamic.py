from __future__ import annotations

import pytest
from google.protobuf import text_format

from tritonpy_config.validate.dynamic import dynamic_batching_problems
from tritonpy_protos.model_config_pb2 import ModelConfig


def problems(text):
    config = text_format.Parse(text, ModelConfig(name="m", max_batch_size=8))
    return [(each.path, each.text) for each in dynamic_batching_problems(config)]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "dynamic_batching {}",
        "dynamic_batching { preferred_batch_size: [1, 8] }",
        "dynamic_batching { priority_levels: 2 default_priority_level: 2 priority_queue_policy { key: 1 value {} } }",
        "dynamic_batching { preserve_ordering: true priority_levels: 1 default_priority_level: 1 }",
        "dynamic_batching { preserve_ordering: true default_queue_policy { timeout_action: DELAY } }",
        "dynamic_batching { default_queue_policy { timeout_action: DELAY default_timeout_microseconds: 1 } }",
    ],
)
def test_valid_settings_have_no_problems(text):
    assert problems(text) == []


RANGE = "must be in range [1, 2] for m"
DELAY = "Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true for m"
LATE = "timeout_action: DELAY default_timeout_microseconds: 1"
CASES = [
    (
        "preferred_batch_size: [4, 0]",
        "preferred_batch_size[1]",
        "dynamic batching preferred size must be positive for m",
    ),
    (
        "preferred_batch_size: [9, 4]",
        "preferred_batch_size[0]",
        "dynamic batching preferred size must be <= max batch size for m",
    ),
    ("priority_levels: 2", "default_priority_level", f"default priority level {RANGE}"),
    (
        "priority_levels: 2 default_priority_level: 3",
        "default_priority_level",
        f"default priority level {RANGE}",
    ),
    (
        "priority_levels: 2 default_priority_level: 1 priority_queue_policy { key: 3 value {} }",
        "priority_queue_policy[3]",
        "priority queue policy must have priority level in range [1, 2] for m",
    ),
    (
        "preserve_ordering: true priority_levels: 2 default_priority_level: 1",
        "priority_levels",
        "Only one priority level is allowed when 'preserve_ordering' is true for m",
    ),
    (
        f"preserve_ordering: true default_queue_policy {{ {LATE} }}",
        "default_queue_policy.timeout_action",
        DELAY,
    ),
    (
        (
            "preserve_ordering: true priority_levels: 1 default_priority_level: 1 "
            f"priority_queue_policy {{ key: 1 value {{ {LATE} }} }}"
        ),
        "priority_queue_policy[1].timeout_action",
        DELAY,
    ),
]


@pytest.mark.parametrize(("text", "path", "expected"), CASES)
def test_an_invalid_setting_is_reported(text, path, expected):
    assert problems(f"dynamic_batching {{ {text} }}") == [(f"dynamic_batching.{path}", expected)]


def test_every_invalid_size_is_reported():
    found = problems("dynamic_batching { preferred_batch_size: [0, 9, 4, 10] }")
    assert [path for path, _ in found] == [
        f"dynamic_batching.preferred_batch_size[{index}]" for index in (0, 1, 3)
    ]
