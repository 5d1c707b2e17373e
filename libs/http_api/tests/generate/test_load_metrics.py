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


def gauge(name: str, **values: float) -> FamilySnapshot:
    metrics = [
        MetricSnapshot({"model": model, "version": "1"}, value) for model, value in values.items()
    ]
    return FamilySnapshot(name, "", MetricKind.GAUGE, metrics)


@pytest.mark.parametrize("prefix", ["vllm:", "nv_generation_"])
def test_other_engines_report_their_cache_and_their_queue(prefix):
    found = [
        gauge(f"{prefix}kv_cache_usage_perc", m=0.25, other=0.9),
        gauge(f"{prefix}num_requests_running", m=3, other=8),
        gauge(f"{prefix}num_requests_waiting", m=2),
        gauge(f"{prefix}generation_tokens_total", m=100),
        gauge("unrelated_num_requests_waiting", m=7),
    ]
    assert load_metrics("text", found, LOG, "m") == (
        "TEXT named_metrics.kv_cache_utilization=0.250000, "
        "named_metrics.num_requests_running=3, named_metrics.num_requests_waiting=2"
    )
    assert json.loads(load_metrics("json", found, LOG, "other").removeprefix("JSON ")) == {
        "named_metrics": {"kv_cache_utilization": 0.9, "num_requests_running": 8}
    }
    assert load_metrics("text", found, LOG, "unknown") == ""
