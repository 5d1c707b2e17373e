"""Metric families per model version: name, type, help text and value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tritonpy.metrics import Duration, InferStatistics, ModelGauges, ModelStatistics


@dataclass(frozen=True, slots=True)
class ModelFamily:
    """A family without additional labels. `kind` is the Prometheus type name."""

    name: str
    kind: str
    help: str
    read: Callable[[ModelStatistics, ModelGauges], float]


def _microseconds(
    pick: Callable[[InferStatistics], Duration],
) -> Callable[[ModelStatistics, ModelGauges], float]:
    return lambda statistics, _gauges: pick(statistics.inference_stats).ns // 1000


SUCCESS = ModelFamily(
    "nv_inference_request_success", "counter", (
        "Number of successful inference requests, "
        "all batch sizes"
    ),
    lambda statistics, _gauges: statistics.inference_stats.success.count,
)  # fmt: skip

MEMORY_NAME = "nv_model_memory_bytes"
MEMORY_HELP = (
    "Memory used by the model by kind (CPU, CPU_PINNED, GPU) and device, as far as known, in bytes"
)

FAILURE_NAME = "nv_inference_request_failure"
FAILURE_HELP = "Number of failed inference requests, all batch sizes"

COUNTS = (
    ModelFamily(
        "nv_inference_count", "counter", (
            "Number of inferences performed (does not "
            "include cached requests)"
        ),
        lambda statistics, _gauges: statistics.inference_count,
    ),
    ModelFamily(
        "nv_inference_exec_count", "counter", (
            "Number of model executions performed (does not "
            "include cached requests)"
        ),
        lambda statistics, _gauges: statistics.execution_count,
    ),
)  # fmt: skip

LATENCIES = (
    ModelFamily(
        "nv_inference_request_duration_us", "counter", (
            "Cumulative inference request duration in microseconds "
            "(includes cached requests)"
        ),
        _microseconds(lambda times: times.success),
    ),
    ModelFamily(
        "nv_inference_queue_duration_us", "counter", (
            "Cumulative inference queuing duration in microseconds "
            "(includes cached requests)"
        ),
        _microseconds(lambda times: times.queue),
    ),
    ModelFamily(
        "nv_inference_compute_input_duration_us", "counter", (
            "Cumulative compute input duration in microseconds (does not "
            "include cached requests)"
        ),
        _microseconds(lambda times: times.compute_input),
    ),
    ModelFamily(
        "nv_inference_compute_infer_duration_us", "counter", (
            "Cumulative compute inference duration in microseconds (does not include cached "
            "requests)"
        ),
        _microseconds(lambda times: times.compute_infer),
    ),
    ModelFamily(
        "nv_inference_compute_output_duration_us", "counter", (
            "Cumulative inference compute output duration in microseconds (does not include "
            "cached requests)"
        ),
        _microseconds(lambda times: times.compute_output),
    ),
)  # fmt: skip

CACHE = (
    ModelFamily(
        "nv_cache_num_hits_per_model", "counter", "Number of cache hits per model",
        lambda statistics, _gauges: statistics.inference_stats.cache_hit.count,
    ),
    ModelFamily(
        "nv_cache_hit_duration_per_model", "counter", (
            "Total cache hit duration per model, "
            "in microseconds"
        ),
        _microseconds(lambda times: times.cache_hit),
    ),
    ModelFamily(
        "nv_cache_num_misses_per_model", "counter", "Number of cache misses per model",
        lambda statistics, _gauges: statistics.inference_stats.cache_miss.count,
    ),
    ModelFamily(
        "nv_cache_miss_duration_per_model", "counter", (
            "Total cache miss (insert+lookup) duration per "
            "model, in microseconds"
        ),
        _microseconds(lambda times: times.cache_miss),
    ),
)  # fmt: skip
"""For models with a response cache, and only with latency counters, as in Triton."""

GAUGES = (
    ModelFamily(
        "nv_inference_pending_request_count", "gauge", (
            "Instantaneous number of pending requests awaiting "
            "execution per-model."
        ),
        lambda _statistics, gauges: gauges.pending,
    ),
    ModelFamily(
        "nv_model_load_duration_secs", "gauge", "Model load time in seconds",
        lambda _statistics, gauges: gauges.load_seconds,
    ),
)  # fmt: skip
