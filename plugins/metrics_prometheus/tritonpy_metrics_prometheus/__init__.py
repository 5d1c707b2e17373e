"""Metrics for Prometheus on a separate port, with Triton's names.

Start at `frontend` and `collector`.
"""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import hookimpl


@hookimpl
def tritonpy_frontends() -> Mapping[str, str]:
    """Register the frontend `metrics`."""
    return {"metrics": "tritonpy_metrics_prometheus.frontend:MetricsFrontend"}
