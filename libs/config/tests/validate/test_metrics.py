from __future__ import annotations

import pytest
from google.protobuf import text_format

from tritonpy_config.validate.rules import metrics_problems
from tritonpy_protos.model_config_pb2 import ModelConfig

FAMILY = 'metric_identifier { family: "f" }'
BUCKETS = "histogram_options { buckets: 1 }"


def problems(text):
    config = text_format.Parse(f"model_metrics {{ metric_control {{ {text} }} }}", ModelConfig())
    return [(each.path, each.text) for each in metrics_problems(config)]


def test_a_complete_metric_control_is_valid():
    assert problems(FAMILY + BUCKETS) == []


@pytest.mark.parametrize(
    ("text", "path", "expected"),
    [
        (BUCKETS, "", "metric control must specify 'metric_identifier'"),
        (
            "metric_identifier {}" + BUCKETS,
            ".metric_identifier",
            "metric identifier must specify non-empty 'family'",
        ),
        (FAMILY, "", "metric control must specify 'histogram_options'"),
        (
            FAMILY + "histogram_options {}",
            ".histogram_options",
            "histogram options must specify non-empty 'buckets'",
        ),
    ],
)
def test_missing_fields_of_a_metric_control_are_reported(text, path, expected):
    assert problems(text) == [(f"model_metrics.metric_control[0]{path}", expected)]
