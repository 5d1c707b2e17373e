"""Rules for the names and labels of a model's metrics."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tritonpy.custom_metrics.kind import MetricKind
from tritonpy.errors import AlreadyExists, InvalidArgument

# Prometheus' data model; it reserves names that start with two underscores.
_METRIC_NAME = re.compile(r"(?!__)[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL_NAME = re.compile(r"(?!__)[a-zA-Z_][a-zA-Z0-9_]*")

SERVER_METRICS = frozenset(
    f"nv_{name}"
    for name in (
        "inference_request_success", "inference_request_failure", "inference_count", "inference_exec_count",
        "inference_pending_request_count", "inference_first_response_histogram_ms", "model_load_duration_secs",
        "model_memory_bytes",
        *(
            f"inference_{part}_{form}_us"
            for part in ("request", "queue", "compute_input", "compute_infer", "compute_output")
            for form in ("duration", "summary")
        ),
        *(f"cache_{name}_{form}_per_model" for name in ("hit", "miss") for form in ("duration", "summary")),
        "cache_num_hits_per_model", "cache_num_misses_per_model",
        *(f"cache_{name}" for name in ("util", "lookup_duration", "insertion_duration")),
        *(f"cache_num_{name}" for name in ("entries", "hits", "misses", "lookups", "evictions")),
        "cpu_utilization", "cpu_memory_total_bytes", "cpu_memory_used_bytes",
        "gpu_utilization", "gpu_memory_total_bytes", "gpu_memory_used_bytes", "gpu_power_usage", "gpu_power_limit",
        "energy_consumption", "pinned_memory_pool_total_bytes", "pinned_memory_pool_used_bytes", "pinned_memory_pool_fallback_count",
        "cuda_memory_pool_total_bytes", "cuda_memory_pool_used_bytes",
        "memory_budget_bytes", "memory_budget_used_bytes", "memory_budget_waiting_loads",
        *(f"lazy_{name}" for name in ("hits", "misses", "refusals", "loads", "load_failures", "evictions", "waiting_requests")),
        *(f"request_memory_{name}" for name in ("bytes", "limit_bytes", "refusals")),
    )
)  # fmt: skip
"""The names of the server's own metrics, which models may not use."""


def check_name(name: str) -> None:
    """Raise InvalidArgument for an invalid name, AlreadyExists for a metric of the server."""
    if not _METRIC_NAME.fullmatch(name):
        raise InvalidArgument("Invalid metric name")
    if name in SERVER_METRICS:
        raise AlreadyExists(f"Family name already exists: '{name}' is a metric of the server itself")


def sorted_labels(labels: Mapping[str, str], kind: MetricKind) -> tuple[tuple[str, str], ...]:
    """Return the labels sorted by name. Raises InvalidArgument for an invalid name or value."""
    for name, value in labels.items():
        if not isinstance(value, str):
            raise InvalidArgument(
                f"Parameter [{name}] must have a type of TRITONSERVER_PARAMETER_STRING to be added as a label."
            )
        if not _LABEL_NAME.fullmatch(name) or (name == "le" and kind is MetricKind.HISTOGRAM):
            raise InvalidArgument("Invalid label name")
    return tuple(sorted(labels.items()))
