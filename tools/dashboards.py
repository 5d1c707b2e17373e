"""Write the Grafana dashboards into the Helm chart: `python3 tools/dashboards.py [--check]`.

With --check, nothing is written, and the exit status is 1 if a file is not up to date.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).resolve().parent.parent / "deploy/helm/tritonpy/files/dashboards"
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_HEIGHT, _WIDTH = 8, 12
_QUANTILES = (0.5, 0.95, 0.99)


class Query(NamedTuple):
    """A PromQL expression and the name of its lines."""

    expression: str
    legend: str


class Panel(NamedTuple):
    """A plot: its title, what it tells the reader, the unit of its axis, and its lines."""

    title: str
    description: str
    unit: str
    queries: tuple[Query, ...]


def rate(name: str, by: str = "model") -> str:
    """Return the rate of a counter of the selected models, summed by labels."""
    grouped = f" by ({by})" if by else ""
    return f"sum{grouped} (rate({name}{{{_LABELS}}}[$__rate_interval]))"


def mean_seconds(duration_us: str) -> str:
    """Return the mean of a duration in µs per request, in seconds."""
    requests = f"clamp_min({rate('nv_inference_request_success')}, 0.001)"
    return f"{rate(duration_us)} / {requests} / 1e6"


def total(name: str, by: str = "model", labels: str = "") -> str:
    """Return a gauge, summed by labels."""
    grouped = f" by ({by})" if by else ""
    return f"sum{grouped} ({name}{{{labels or _LABELS}}})"


_LABELS = 'namespace=~"$namespace",model=~"$model"'
_SERVER = 'namespace=~"$namespace"'

SERVER = (
    Panel(
        "Requests per second",
        "Successful inference requests of each model.",
        "reqps",
        (Query(rate("nv_inference_request_success"), "{{model}}"),),
    ),
    Panel(
        "Failed requests per second",
        "Failures by their reason. REJECTED means that a queue was full or a timeout passed.",
        "reqps",
        (Query(rate("nv_inference_request_failure", "model, reason"), "{{model}}, {{reason}}"),),
    ),
    Panel(
        "Time of a request, mean",
        "From the arrival of a request to its response.",
        "s",
        (Query(mean_seconds("nv_inference_request_duration_us"), "{{model}}"),),
    ),
    Panel(
        "Time in the queue, mean",
        "A long time needs more replicas or instances, or a smaller queue delay.",
        "s",
        (Query(mean_seconds("nv_inference_queue_duration_us"), "{{model}}"),),
    ),
    Panel(
        "Time in the model, mean",
        "The execution itself, without gathering inputs and scattering outputs.",
        "s",
        (Query(mean_seconds("nv_inference_compute_infer_duration_us"), "{{model}}"),),
    ),
    Panel(
        "Waiting requests",
        "Requests that no instance has taken yet. The autoscaler of the chart uses this.",
        "short",
        (Query(total("nv_inference_pending_request_count"), "{{model}}"),),
    ),
    Panel(
        "Inferences per execution",
        "The mean batch size: how much dynamic batching achieves.",
        "short",
        (
            Query(
                f"{rate('nv_inference_count')} / "
                f"clamp_min({rate('nv_inference_exec_count')}, 0.001)",
                "{{model}}",
            ),
        ),
    ),
    Panel(
        "Memory of models",
        "What each loaded model holds, by device.",
        "bytes",
        (Query(total("nv_model_memory_bytes", "model, type"), "{{model}}, {{type}}"),),
    ),
    Panel(
        "Memory of requests",
        "Bodies and unsent responses. At the limit, requests are refused with 503.",
        "bytes",
        (
            Query(total("nv_request_memory_bytes", "", _SERVER), "used"),
            Query(total("nv_request_memory_limit_bytes", "", _SERVER), "limit"),
        ),
    ),
    Panel(
        "Processor and main memory",
        "Use of the machine or container, from 0 to 1.",
        "percentunit",
        (
            Query(f"avg(nv_cpu_utilization{{{_SERVER}}})", "processor"),
            Query(
                f"sum(nv_cpu_memory_used_bytes{{{_SERVER}}}) / "
                f"sum(nv_cpu_memory_total_bytes{{{_SERVER}}})",
                "memory",
            ),
        ),
    ),
    Panel(
        "GPU utilization",
        "Share of the time in which a GPU ran a kernel. Empty without GPUs.",
        "percentunit",
        (Query(f"nv_gpu_utilization{{{_SERVER}}}", "{{gpu_uuid}}"),),
    ),
    Panel(
        "GPU memory",
        "Used memory of each GPU. Empty without GPUs.",
        "bytes",
        (Query(f"nv_gpu_memory_used_bytes{{{_SERVER}}}", "{{gpu_uuid}}"),),
    ),
)


def text_rate(name: str, by: str = "model") -> str:
    """Return the rate of a counter of language models, without prefix in its name."""
    grouped = f" by ({by})" if by else ""
    return f'sum{grouped} (rate(${{prefix}}{name}{{model=~"$model"}}[$__rate_interval]))'


def quantiles(name: str) -> tuple[Query, ...]:
    """Return quantiles of a histogram of language models."""
    buckets = text_rate(f"{name}_bucket", "le")
    return tuple(
        Query(f"histogram_quantile({each}, {buckets})", f"p{each * 100:g}") for each in _QUANTILES
    )


def text_mean(name: str, legend: str) -> Query:
    """Return the mean of a histogram of language models."""
    return Query(f"{text_rate(f'{name}_sum', '')} / {text_rate(f'{name}_count', '')}", legend)


def text_gauge(function: str, name: str, legend: str) -> Query:
    """Return a gauge of language models."""
    return Query(f'{function} by (model) (${{prefix}}{name}{{model=~"$model"}})', legend)


LANGUAGE_MODELS = (
    Panel(
        "Tokens per second",
        "How many tokens the models write and read.",
        "short",
        (
            Query(text_rate("generation_tokens_total"), "generated, {{model}}"),
            Query(text_rate("prompt_tokens_total"), "prompts, {{model}}"),
        ),
    ),
    Panel(
        "Requests in the engines",
        "Requests that wait have no place in the engine yet.",
        "short",
        (
            text_gauge("sum", "num_requests_running", "running, {{model}}"),
            text_gauge("sum", "num_requests_waiting", "waiting, {{model}}"),
        ),
    ),
    Panel(
        "Time to the first token",
        "From the arrival of a request to its first token, with its time in the queue.",
        "s",
        quantiles("time_to_first_token_seconds"),
    ),
    Panel(
        "Time per token",
        "The rest of the time divided by the tokens after the first.",
        "s",
        quantiles("time_per_output_token_seconds"),
    ),
    Panel(
        "Time of a request",
        "From the arrival of a request to its last token.",
        "s",
        quantiles("e2e_request_latency_seconds"),
    ),
    Panel(
        "Where the time goes, mean",
        "A long queue needs more instances, a long prefill shorter prompts or a prefix cache.",
        "s",
        tuple(
            text_mean(f"request_{part}_time_seconds", part)
            for part in ("queue", "prefill", "decode")
        ),
    ),
    Panel(
        "Key-value cache",
        "The used part of the cache. When it is full, requests wait or are preempted.",
        "percentunit",
        (text_gauge("max", "kv_cache_usage_perc", "used, {{model}}"),),
    ),
    Panel(
        "Prefix cache hits",
        "The part of the prompt tokens that was computed before.",
        "percentunit",
        (
            Query(
                f"{text_rate('prefix_cache_hits_total')} / "
                f"{text_rate('prefix_cache_queries_total')}",
                "{{model}}",
            ),
        ),
    ),
    Panel(
        "Preemptions per second",
        "Requests that lost their place in the cache and begin again.",
        "short",
        (Query(text_rate("num_preemptions_total"), "{{model}}"),),
    ),
    Panel(
        "Completed requests per second",
        "Why responses ended: stop, length, or an error.",
        "reqps",
        (Query(text_rate("request_success_total", "finished_reason"), "{{finished_reason}}"),),
    ),
    Panel(
        "Tokens of prompts", "How long prompts are.", "short", quantiles("request_prompt_tokens")
    ),
    Panel(
        "Tokens of responses",
        "How long responses are.",
        "short",
        quantiles("request_generation_tokens"),
    ),
)


def variable(name: str, label: str, query: str) -> dict[str, Any]:
    """Return a variable whose choices are the values of a label."""
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }


def choice(name: str, label: str, values: Sequence[str]) -> dict[str, Any]:
    """Return a variable with fixed choices; the first is the default."""
    options = [{"text": each, "value": each, "selected": each == values[0]} for each in values]
    return {
        "name": name,
        "label": label,
        "type": "custom",
        "query": ",".join(values),
        "current": {"text": values[0], "value": values[0]},
        "options": options,
    }


def dashboard(
    title: str, name: str, panels: Sequence[Panel], variables: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """Return a dashboard with two panels per row."""
    source = {
        "name": "datasource",
        "label": "Data source",
        "type": "datasource",
        "query": "prometheus",
    }
    return {
        "title": f"tritonpy: {title}",
        "uid": f"tritonpy-{name}",
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "tags": ["tritonpy"],
        "refresh": "10s",
        "time": {"from": "now-30m", "to": "now"},
        "templating": {"list": [source, *variables]},
        "panels": [_panel(number, panel) for number, panel in enumerate(panels)],
    }


def _panel(number: int, panel: Panel) -> dict[str, Any]:
    place = {
        "h": _HEIGHT,
        "w": _WIDTH,
        "x": number % 2 * _WIDTH,
        "y": number // 2 * _HEIGHT,
    }
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.description,
        "datasource": _SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "options": {
            "legend": {"displayMode": "list", "placement": "bottom"},
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
        "targets": [
            {
                "refId": chr(ord("A") + position),
                "datasource": _SOURCE,
                "expr": query.expression,
                "legendFormat": query.legend,
            }
            for position, query in enumerate(panel.queries)
        ],
    }


def dashboards() -> dict[str, dict[str, Any]]:
    """Return every dashboard by its file name."""
    namespace = "label_values(nv_inference_request_success, namespace)"
    model = 'label_values(nv_inference_request_success{namespace=~"$namespace"}, model)'
    text_model = "label_values(${prefix}generation_tokens_total, model)"
    return {
        "server.json": dashboard(
            "server",
            "server",
            SERVER,
            [
                variable("namespace", "Namespace", namespace),
                variable("model", "Model", model),
            ],
        ),
        "language_models.json": dashboard(
            "language models",
            "language-models",
            LANGUAGE_MODELS,
            [
                choice("prefix", "Names", ["vllm:", "nv_generation_"]),
                variable("model", "Model", text_model),
            ],
        ),
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Write or check the files; return the exit status."""
    summary, _, details = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(description=summary, epilog=details)
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args(argv).check
    outdated = []
    for name, content in dashboards().items():
        path, text = FOLDER / name, json.dumps(content, indent=1) + "\n"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            outdated.append(name)
            if not check:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
    if check and outdated:
        print(f"not up to date: {', '.join(outdated)}; run python3 tools/dashboards.py")
    return int(check and bool(outdated))


if __name__ == "__main__":
    sys.exit(main())
