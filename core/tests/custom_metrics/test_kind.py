from __future__ import annotations

from tritonpy.custom_metrics.kind import MetricKind


def test_a_kind_has_prometheus_type_and_tritons_constant() -> None:
    assert {kind.value: kind.triton_name for kind in MetricKind} == {
        "counter": "TRITONSERVER_METRIC_KIND_COUNTER",
        "gauge": "TRITONSERVER_METRIC_KIND_GAUGE",
        "histogram": "TRITONSERVER_METRIC_KIND_HISTOGRAM",
    }
