from __future__ import annotations

import json
import logging
import math

import pytest

from tritonpy.metrics import FamilySnapshot, MetricKind, MetricSnapshot
from tritonpy_http_api.generate.load_metrics import load_metrics

LOG = logging.getLogger("tritonpy.test.load_metrics")
FAMILY = "nv_trt_llm_kv_cache_block_metrics"


def families(name: str = FAMILY, **values: float):
    metrics = [
        MetricSnapshot({"kv_cache_block_type": kind, "model": "m"}, value)
        for kind, value in values.items()
    ]
    other = FamilySnapshot(
        "other", "", MetricKind.GAUGE, [MetricSnapshot({"kv_cache_block_type": "used"}, 99)]
    )
    return [other, FamilySnapshot(name, "", MetricKind.GAUGE, [MetricSnapshot({}, 5), *metrics])]


def test_cache_usage_is_formatted_as_text():
    value = load_metrics("text", families(used=15, max=50, tokens_per=64, free=35), LOG)
    assert (
        value
        == "TEXT named_metrics.kv_cache_utilization=0.300000, named_metrics.max_token_capacity=3200"
    )


def test_cache_usage_is_formatted_as_json():
    value = load_metrics("json", families(used=1, max=3, tokens_per=64), LOG)
    assert value.startswith("JSON ")
    assert json.loads(value.removeprefix("JSON ")) == {
        "named_metrics": {"kv_cache_utilization": 1 / 3, "max_token_capacity": 192}
    }


def test_a_cache_without_blocks_has_zero_utilization():
    assert "kv_cache_utilization=0.000000" in load_metrics(
        "text", families(used=0, max=0, tokens_per=64), LOG
    )


@pytest.mark.parametrize("missing", ["used", "max", "tokens_per"])
@pytest.mark.parametrize("value", [None, -1.0, math.inf, math.nan])
def test_a_missing_metric_omits_the_header(missing, value, caplog):
    values = {"used": 1.0, "max": 2.0, "tokens_per": 3.0}
    values.pop(missing)
    if value is not None:
        values[missing] = value
    assert load_metrics("text", families(**values), LOG) == ""
    assert missing in caplog.text


def test_an_unknown_format_is_logged(caplog):
    assert load_metrics("xml", families(used=1, max=2, tokens_per=3), LOG) == ""
    assert "'xml'" in caplog.text


def test_without_metrics_the_header_is_omitted(caplog):
    assert load_metrics("json", [], LOG) == ""
    assert FAMILY in caplog.text
