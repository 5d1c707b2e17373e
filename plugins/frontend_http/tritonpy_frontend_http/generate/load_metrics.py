"""The response header `endpoint-load-metrics`: how full the model's key-value cache is, for a load balancer that speaks ORCA."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Iterable

from tritonpy import FamilySnapshot

ASKED, TOLD = b"endpoint-load-metrics-format", b"endpoint-load-metrics"
_FAMILY = "nv_trt_llm_kv_cache_block_metrics"
_LABEL = "kv_cache_block_type"


def load_metrics(form: str, families: Iterable[FamilySnapshot], log: logging.Logger) -> str:
    """Return the header's value in `form` ("text" or "json"), computed from the metrics that the models made.

    Returns "" and logs why where the form is another or a number is missing: then the header is left out.
    """
    blocks = _blocks(families)
    if form not in {"text", "json"}:
        log.error("no %s header: '%s' is no form of it, choose text or json", TOLD.decode(), form)
        return ""
    try:
        capacity = int(blocks["max"] * blocks["tokens_per"])
        utilization = blocks["used"] / blocks["max"] if blocks["max"] else 0.0
    except KeyError as missing:
        log.error("no %s header: %s has no %s=%s", TOLD.decode(), _FAMILY, _LABEL, missing)
        return ""
    if form == "json":
        named = {"kv_cache_utilization": utilization, "max_token_capacity": capacity}
        return "JSON " + json.dumps({"named_metrics": named}, separators=(",", ":"))
    return f"TEXT named_metrics.kv_cache_utilization={utilization:f}, named_metrics.max_token_capacity={capacity}"


def _blocks(families: Iterable[FamilySnapshot]) -> dict[str, float]:
    return {
        metric.labels[_LABEL]: metric.value
        for family in families if family.name == _FAMILY
        for metric in family.metrics if _LABEL in metric.labels and 0 <= metric.value < math.inf
    }  # fmt: skip
