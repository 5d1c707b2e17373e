"""Samples of histograms and summaries in Triton's order: count, sum, buckets or quantiles."""

from __future__ import annotations

import math
from collections.abc import Mapping

from prometheus_client import Metric

from tritonpy.metrics import HistogramSnapshot, SummarySnapshot
from tritonpy_metrics_prometheus.exposition import number

FIRST_RESPONSE = "nv_inference_first_response_histogram_ms"
FIRST_RESPONSE_HELP = "Duration from request to first response in milliseconds"
SUMMARIES = {
    "request": "Summary of inference request duration in microseconds (includes cached requests)",
    "queue": "Summary of inference queuing duration in microseconds (includes cached requests)",
    "compute_input": (
        "Cumulative compute input duration in microseconds (does not include cached requests)"
    ),
    "compute_infer": (
        "Cumulative compute inference duration in microseconds (does not include cached requests)"
    ),
    "compute_output": (
        "Cumulative inference compute output duration in microseconds (does not include cached "
        "requests)"
    ),
    "cache_hit": "Summary of cache hit counts/durations per model, in microseconds.",
    "cache_miss": "Summary of cache miss counts/durations per model, in microseconds.",
}
"""Help text of each summary, by the part of a request's duration."""


def summary_name(part: str) -> str:
    """Return the family name for a part of a request's duration."""
    if part.startswith("cache_"):
        return f"nv_{part}_summary_per_model"
    return f"nv_inference_{part}_summary_us"


def add_histogram(metric: Metric, labels: Mapping[str, str], histogram: HistogramSnapshot) -> None:
    """Add the samples of one histogram to its family."""
    own = dict(labels)
    metric.add_sample(f"{metric.name}_count", own, histogram.count)
    metric.add_sample(f"{metric.name}_sum", own, histogram.sum)
    bounds, counts = [*histogram.bounds, math.inf], [*histogram.counts, histogram.count]
    for bound, count in zip(bounds, counts, strict=True):
        metric.add_sample(f"{metric.name}_bucket", {**own, "le": number(bound)}, count)


def add_summary(metric: Metric, labels: Mapping[str, str], summary: SummarySnapshot) -> None:
    """Add the samples of one summary to its family."""
    own = dict(labels)
    metric.add_sample(f"{metric.name}_count", own, summary.count)
    metric.add_sample(f"{metric.name}_sum", own, summary.sum)
    for quantile, value in summary.quantiles:
        metric.add_sample(
            metric.name, {**own, "quantile": number(quantile)}, math.nan if value is None else value
        )
