"""Metrics and statistics: snapshots for exporters, custom metric families, observers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tritonpy.lazy_names import lazy_names

if TYPE_CHECKING:
    from tritonpy.api.engine import (
        BatchStatistics,
        Duration,
        GpuShare,
        InferStatistics,
        ModelGauges,
        ModelStatistics,
        ResponseStatistics,
        SummarySnapshot,
    )
    from tritonpy.api.observer import Event, Observer
    from tritonpy_metrics import (
        SERVER_METRICS,
        CustomMetrics,
        FamilySnapshot,
        HistogramSnapshot,
        Metric,
        MetricFamily,
        MetricKind,
        MetricSnapshot,
        ModelMetrics,
    )
    from tritonpy_types import ComputeTimes
    from tritonpy_types.errors import FailureReason

__all__ = [
    "SERVER_METRICS",
    "BatchStatistics",
    "ComputeTimes",
    "CustomMetrics",
    "Duration",
    "Event",
    "FailureReason",
    "FamilySnapshot",
    "GpuShare",
    "HistogramSnapshot",
    "InferStatistics",
    "Metric",
    "MetricFamily",
    "MetricKind",
    "MetricSnapshot",
    "ModelGauges",
    "ModelMetrics",
    "ModelStatistics",
    "Observer",
    "ResponseStatistics",
    "SummarySnapshot",
]

__getattr__ = lazy_names(
    __name__,
    {
        "tritonpy.api.engine": (
            "BatchStatistics",
            "Duration",
            "GpuShare",
            "InferStatistics",
            "ModelGauges",
            "ModelStatistics",
            "ResponseStatistics",
            "SummarySnapshot",
        ),
        "tritonpy.api.observer": ("Event", "Observer"),
        "tritonpy_metrics": (
            "SERVER_METRICS",
            "CustomMetrics",
            "FamilySnapshot",
            "HistogramSnapshot",
            "Metric",
            "MetricFamily",
            "MetricKind",
            "MetricSnapshot",
            "ModelMetrics",
        ),
        "tritonpy_types.errors": ("FailureReason",),
        "tritonpy_types": ("ComputeTimes",),
    },
)
