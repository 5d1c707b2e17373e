from __future__ import annotations

from tritonpy.custom_metrics.kind import MetricKind


def test_a_kind_is_prometheus_type_and_has_triton_s_constant() -> None:
    assert {kind.value: kind.triton_name for kind in MetricKind} == {
        "counter": "TRITONSERVER_METRIC_KIND_COUNTER",
        "gauge": "TRITONSERVER_METRIC_KIND_GAUGE",
        "histogram": "TRITONSERVER_METRIC_KIND_HISTOGRAM",
    }
