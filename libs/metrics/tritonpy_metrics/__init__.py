"""Metrics that models create: one registry for the server, shared by all its models.

Start at `registry`; `handles` has what models hold. The library imports `tritonpy_types` and
`tritonpy_config` only.
"""

from __future__ import annotations

from tritonpy_metrics.handles import Metric, MetricFamily, ModelMetrics
from tritonpy_metrics.registry import (
    SERVER_METRICS,
    CustomMetrics,
    FamilySnapshot,
    HistogramSnapshot,
    MetricKind,
    MetricSnapshot,
)

__all__ = [
    "SERVER_METRICS",
    "CustomMetrics",
    "FamilySnapshot",
    "HistogramSnapshot",
    "Metric",
    "MetricFamily",
    "MetricKind",
    "MetricSnapshot",
    "ModelMetrics",
]
