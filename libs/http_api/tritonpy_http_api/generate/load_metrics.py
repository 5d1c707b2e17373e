"""The response header `endpoint-load-metrics`: the load of an engine, for load balancers (ORCA).

Sources: Triton's HTTP server for engines with the metrics of TensorRT-LLM, and the load reports of
vLLM's server for the others.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Iterable

from tritonpy.metrics import FamilySnapshot

FORMAT_HEADER, METRICS_HEADER = b"endpoint-load-metrics-format", b"endpoint-load-metrics"
_FAMILY = "nv_trt_llm_kv_cache_block_metrics"
_LABEL = "kv_cache_block_type"
_PREFIXES = ("vllm:", "nv_generation_")
# The figures of other engines: the metric without prefix, and its name in the header.
_FIGURES = {
    "kv_cache_usage_perc": "kv_cache_utilization",
    "num_requests_running": "num_requests_running",
    "num_requests_waiting": "num_requests_waiting",
}


def load_metrics(
    format_: str, families: Iterable[FamilySnapshot], log: logging.Logger, model: str = ""
) -> str:
    """Return the header value for the metrics of the models; `format_` is "text" or "json".

    Without the metrics of TensorRT-LLM, it has the figures of the engine of `model`. Returns "" and
    logs the reason if the format is unknown or a metric is missing.
    """
    if format_ not in {"text", "json"}:
        log.error(
            "no %s header: unknown format '%s', use text or json", METRICS_HEADER.decode(), format_
        )
        return ""
    families = list(families)
    blocks = _blocks(families)
    named = {} if blocks else _figures(families, model)
    try:
        if not named:
            capacity = int(blocks["max"] * blocks["tokens_per"])
            utilization = blocks["used"] / blocks["max"] if blocks["max"] else 0.0
            named = {"kv_cache_utilization": utilization, "max_token_capacity": capacity}
    except KeyError as missing:
        log.error(
            "no %s header: metric %s has no label %s=%s",
            METRICS_HEADER.decode(),
            _FAMILY,
            _LABEL,
            missing,
        )
        return ""
    if format_ == "json":
        return "JSON " + json.dumps({"named_metrics": named}, separators=(",", ":"))
    return "TEXT " + ", ".join(
        f"named_metrics.{name}={value:f}"
        if isinstance(value, float)
        else f"named_metrics.{name}={value}"
        for name, value in named.items()
    )


def _blocks(families: Iterable[FamilySnapshot]) -> dict[str, float]:
    return {
        metric.labels[_LABEL]: metric.value
        for family in families if family.name == _FAMILY
        for metric in family.metrics if _LABEL in metric.labels and 0 <= metric.value < math.inf
    }  # fmt: skip


def _figures(families: Iterable[FamilySnapshot], model: str) -> dict[str, float | int]:
    """Return the figures of a model's engine, those that it measures."""
    named: dict[str, float | int] = {}
    for family in families:
        prefix = next((each for each in _PREFIXES if family.name.startswith(each)), None)
        name = _FIGURES.get(family.name.removeprefix(prefix)) if prefix else None
        values = [
            metric.value
            for metric in family.metrics
            if metric.labels.get("model") == model and 0 <= metric.value < math.inf
        ]
        if name is not None and values:
            share = name == "kv_cache_utilization"
            named[name] = max(values) if share else int(sum(values))
    return named
