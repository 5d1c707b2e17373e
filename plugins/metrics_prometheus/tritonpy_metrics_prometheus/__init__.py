"""Metrics for Prometheus on a port of their own, under the names that Triton uses."""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import hookimpl


@hookimpl
def tritonpy_frontends() -> Mapping[str, str]:
    """Register the frontend `metrics`."""
    return {"metrics": "tritonpy_metrics_prometheus.frontend:MetricsFrontend"}
