from __future__ import annotations

import pytest
from google.protobuf import text_format

from tritonpy_config.validate.rules import cache_problems
from tritonpy_protos.model_config_pb2 import ModelConfig


def problems(text):
    return [
        (each.path, each.text)
        for each in cache_problems(text_format.Parse(text, ModelConfig(name="m")))
    ]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "response_cache { enable: true }",
        "sequence_batching {}",
        "model_transaction_policy { decoupled: true }",
    ],
)
def test_a_cache_alone_is_valid(text):
    assert problems(text) == []


CASES = [
    ("sequence_batching {}", "sequence batching scheduler"),
    ("model_transaction_policy { decoupled: true }", "'decoupled' transaction policy"),
]


@pytest.mark.parametrize(("setting", "text"), CASES)
def test_settings_that_exclude_a_cache_are_reported(setting, text):
    expected = f"Response Cache does not currently support model m with {text}. Please disable the response cache."
    assert problems("response_cache { enable: true } " + setting) == [
        ("response_cache.enable", expected)
    ]
