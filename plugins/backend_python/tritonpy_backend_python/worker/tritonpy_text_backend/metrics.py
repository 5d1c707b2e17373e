"""The metrics of an engine that generates text: tokens, latencies, its queue and its cache.

With the prefix `vllm:`, names and labels are those of Triton's vllm_backend. Families that it lacks
have the names that vLLM's own server gives them.
"""

from __future__ import annotations

from typing import Any

import triton_python_backend_utils as pb_utils

_FIRST_TOKEN_S = [
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
]  # fmt: skip
_TOKEN_S = [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5]
_REQUEST_S = [1.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0]
_PART_S = [0.001, 0.01, 0.1, 0.3, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0]
_CHOICES = [1, 2, 5, 10, 20]
_COUNTER, _GAUGE, _HISTOGRAM = (
    pb_utils.MetricFamily.COUNTER,
    pb_utils.MetricFamily.GAUGE,
    pb_utils.MetricFamily.HISTOGRAM,
)


def length_buckets(limit: int) -> list[int]:
    """Return 1, 2, 5, 10, 20, 50 and so on up to `limit`."""
    buckets: list[int] = []
    scale = 1
    while True:
        for factor in (1, 2, 5):
            if factor * scale > limit:
                return buckets
            buckets.append(factor * scale)
        scale *= 10


_COUNTERS = {
    "prompt_tokens_total": "Number of prefill tokens processed.",
    "generation_tokens_total": "Number of generation tokens processed.",
    "prefix_cache_queries_total": "Tokens looked up in the prefix cache.",
    "prefix_cache_hits_total": "Tokens found in the prefix cache.",
    "num_preemptions_total": "Number of preempted requests.",
}
_GAUGES = {
    "num_requests_running": "Number of requests that the engine executes.",
    "num_requests_waiting": "Number of requests that wait for the engine.",
    "kv_cache_usage_perc": "Used part of the key-value cache, 1 for all of it.",
}
_HISTOGRAMS = {
    "time_to_first_token_seconds": ("Time to the first token in seconds.", _FIRST_TOKEN_S),
    "time_per_output_token_seconds": ("Time per output token in seconds.", _TOKEN_S),
    "e2e_request_latency_seconds": ("Time of a request in seconds.", _REQUEST_S),
    "request_queue_time_seconds": ("Time that a request waited in seconds.", _PART_S),
    "request_prefill_time_seconds": ("Time of the prefill in seconds.", _PART_S),
    "request_decode_time_seconds": ("Time of the decoding in seconds.", _PART_S),
    "request_params_n": ("The parameter n of a request.", _CHOICES),
}
_LENGTHS = {
    "request_prompt_tokens": "Number of prefill tokens of a request.",
    "request_generation_tokens": "Number of generated tokens of a request.",
}
_SUCCESS = "request_success_total"


class GenerationMetrics:
    """The metrics of one engine, by name without `prefix`.

    `max_length` is the number of tokens that a prompt and its response have at most. `omitted` are
    the metrics that the engine does not measure.
    """

    def __init__(
        self,
        labels: dict[str, str],
        max_length: int,
        prefix: str = "vllm:",
        omitted: frozenset[str] = frozenset(),
    ) -> None:
        self._labels = labels
        self._prefix = prefix
        self._families: list[Any] = []  # a family must exist as long as its metrics
        self._by_name: dict[str, Any] = {}
        for kind, described in ((_COUNTER, _COUNTERS), (_GAUGE, _GAUGES)):
            for name, description in described.items():
                if name in omitted:
                    continue
                self._by_name[name] = self._family(name, description, kind).Metric(labels=labels)
        lengths = length_buckets(max_length)
        lengthy = {name: (text, lengths) for name, text in _LENGTHS.items()}
        histograms = {**_HISTOGRAMS, **lengthy}
        for name, (description, buckets) in histograms.items():
            if name in omitted:
                continue
            family = self._family(name, description, _HISTOGRAM)
            self._by_name[name] = family.Metric(labels=labels, buckets=buckets)
        self._success = self._family(_SUCCESS, "Number of completed requests by reason.", _COUNTER)
        self._success_by_reason: dict[str, Any] = {}

    def increment(self, name: str, value: float) -> None:
        """Increase a counter."""
        if value:
            self._by_name[name].increment(value)

    def set(self, name: str, value: float) -> None:
        """Set a gauge."""
        self._by_name[name].set(value)

    def observe(self, name: str, *values: float) -> None:
        """Add observations to a histogram."""
        for value in values:
            self._by_name[name].observe(value)

    def count_success(self, reason: str) -> None:
        """Count a completed request."""
        metric = self._success_by_reason.get(reason)
        if metric is None:
            labels = {**self._labels, "finished_reason": reason}
            metric = self._success_by_reason[reason] = self._success.Metric(labels=labels)
        metric.increment(1)

    def _family(self, name: str, description: str, kind: Any) -> Any:
        family = pb_utils.MetricFamily(name=self._prefix + name, description=description, kind=kind)
        self._families.append(family)
        return family
