"""Metrics that models create: one registry for the server, shared by all its models.

Start at `registry`; `handles` has what models hold. The package imports only errors.
"""

from __future__ import annotations

from tritonpy.custom_metrics.handles import Metric, MetricFamily, ModelMetrics
from tritonpy.custom_metrics.registry import (
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
