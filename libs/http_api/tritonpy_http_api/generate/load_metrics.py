"""The response header `endpoint-load-metrics`: key-value cache usage for load balancers (ORCA)."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Iterable

from tritonpy.metrics import FamilySnapshot

FORMAT_HEADER, METRICS_HEADER = b"endpoint-load-metrics-format", b"endpoint-load-metrics"
_FAMILY = "nv_trt_llm_kv_cache_block_metrics"
_LABEL = "kv_cache_block_type"


def load_metrics(format_: str, families: Iterable[FamilySnapshot], log: logging.Logger) -> str:
    """Return the header value for the metrics of the models; `format_` is "text" or "json".

    Returns "" and logs the reason if the format is unknown or a metric is missing.
    """
    blocks = _blocks(families)
    if format_ not in {"text", "json"}:
        log.error(
            "no %s header: unknown format '%s', use text or json", METRICS_HEADER.decode(), format_
        )
        return ""
    try:
        capacity = int(blocks["max"] * blocks["tokens_per"])
        utilization = blocks["used"] / blocks["max"] if blocks["max"] else 0.0
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
        named = {"kv_cache_utilization": utilization, "max_token_capacity": capacity}
        return "JSON " + json.dumps({"named_metrics": named}, separators=(",", ":"))
    return (
        f"TEXT named_metrics.kv_cache_utilization={utilization:f}, "
        f"named_metrics.max_token_capacity={capacity}"
    )


def _blocks(families: Iterable[FamilySnapshot]) -> dict[str, float]:
    return {
        metric.labels[_LABEL]: metric.value
        for family in families if family.name == _FAMILY
        for metric in family.metrics if _LABEL in metric.labels and 0 <= metric.value < math.inf
    }  # fmt: skip
