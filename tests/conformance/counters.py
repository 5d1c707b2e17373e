"""Counters of a server as plain numbers: statistics of models and samples of metrics."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from tests.conformance import http_response
from tests.conformance.exchange import get
from tests.conformance.server import Server

SETTLE_S = 10.0
METRICS = "nv_inference_"
TIMES = ("_us_total", "_summary_us", "_ms", "_bucket", "_sum")


def statistics(server: Server, model: str) -> dict[str, int]:
    """Return every nonzero counter of the model's statistics and metrics by its place."""
    versions = server.get_path(f"/v2/models/{model}/stats").get("json", {}).get("model_stats", [])
    counts = {
        f"version {one['version']} {place}": count
        for one in versions
        for place, count in _counts(one)
    }
    metrics = [
        (name, value)
        for name, value in samples(server, METRICS)
        if f'model="{model}"' in name and not _is_time(name)
    ]
    return {key: int(value) for key, value in [*counts.items(), *metrics] if value}


def _counts(found: dict[str, Any]) -> Iterator[tuple[str, int]]:
    yield from ((name, found.get(name, 0)) for name in ("inference_count", "execution_count"))
    yield from ((kind, entry["count"]) for kind, entry in found.get("inference_stats", {}).items())
    for batch in found.get("batch_stats", []):
        yield f"batch of {batch['batch_size']}", batch["compute_infer"]["count"]
    for response, entries in found.get("response_stats", {}).items():
        yield from (
            (f"response {response} {kind}", entry["count"]) for kind, entry in entries.items()
        )


def _is_time(sample: str) -> bool:
    return sample.partition("{")[0].endswith(TIMES)


def finished(counts: dict[str, int]) -> int:
    """Return the number of completed requests over all versions, failed ones included."""
    return sum(
        count
        for place, count in counts.items()
        if place.startswith("version ") and place.endswith((" success", " fail"))
    )


def growth(server: Server, model: str, before: dict[str, int], requests: int) -> dict[str, int]:
    """Wait until `requests` more are counted and the counters are stable; return the increments."""
    deadline = time.monotonic() + SETTLE_S
    last: dict[str, int] = {}
    equal = 0
    while time.monotonic() < deadline and equal < 3:
        now = statistics(server, model)
        equal = equal + 1 if now == last and finished(now) - finished(before) >= requests else 0
        last = now
        time.sleep(0.02)
    return {key: change for key, value in last.items() if (change := value - before.get(key, 0))}


def samples(server: Server, prefix: str) -> list[tuple[str, float]]:
    """Return the samples of the families with the prefix: value by name with sorted labels."""
    answer = http_response.send(server.ports["metrics"], get("/metrics"))
    found = []
    for family in text_string_to_metric_families(answer["text"]):
        if family.name.startswith(prefix):
            for sample in family.samples:
                labels = ",".join(
                    f"{name}={json.dumps(value)}" for name, value in sorted(sample.labels.items())
                )
                found.append((f"{sample.name}{{{labels}}}", sample.value))
    return sorted(found)


def shapes(server: Server, prefix: str, values: bool) -> dict[str, Any]:
    """Return type, help and samples of the families with the prefix; `values` adds values."""
    return {
        name: {
            **family,
            "samples": family["samples"] if values else sorted(family["samples"]),
        }
        for name, family in families(server, prefix).items()
    }


def families(server: Server, prefix: str) -> dict[str, Any]:
    """Return type, help and samples of the families whose name starts with `prefix`."""
    answer = http_response.send(server.ports["metrics"], get("/metrics"))
    return {
        family.name: {
            "type": family.type,
            "help": family.documentation,
            "samples": {
                key: value
                for key, value in samples(server, family.name)
                if key.startswith(family.name)
            },
        }
        for family in text_string_to_metric_families(answer["text"])
        if family.name.startswith(prefix)
    }
