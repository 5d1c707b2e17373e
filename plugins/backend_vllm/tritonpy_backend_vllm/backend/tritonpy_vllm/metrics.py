"""vLLM's statistics as metrics of the model: the families of vllm_backend, and further ones.

The names and labels are those of vllm_backend: `model` and `version`. Families that it lacks have
the names that vLLM's own server gives them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import triton_python_backend_utils as pb_utils
from vllm.v1.metrics.loggers import StatLoggerBase

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


class _Metrics:
    """The metrics of one engine, by name without the prefix `vllm:`."""

    def __init__(self, labels: dict[str, str], max_model_len: int) -> None:
        self._labels = labels
        self._families: list[Any] = []  # a family must exist as long as its metrics
        self._by_name: dict[str, Any] = {}
        for kind, described in ((_COUNTER, _COUNTERS), (_GAUGE, _GAUGES)):
            for name, description in described.items():
                self._by_name[name] = self._family(name, description, kind).Metric(labels=labels)
        lengths = length_buckets(max_model_len)
        histograms = _HISTOGRAMS | {name: (text, lengths) for name, text in _LENGTHS.items()}
        for name, (description, buckets) in histograms.items():
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
        family = pb_utils.MetricFamily(name=f"vllm:{name}", description=description, kind=kind)
        self._families.append(family)
        return family


class StatisticsLogger(StatLoggerBase):  # type: ignore[misc] # mypy does not know vLLM
    """Receives the statistics of each step of the engine, on its event loop."""

    def __init__(self, labels: dict[str, str], vllm_config: Any, engine_index: int) -> None:
        self.engine_index = engine_index
        self._metrics = _Metrics(labels, vllm_config.model_config.max_model_len)

    def record(
        self,
        scheduler_stats: Any,
        iteration_stats: Any,
        mm_cache_stats: Any = None,
        engine_idx: int = 0,
    ) -> None:
        """Update the metrics after a step of the engine."""
        if scheduler_stats is not None:
            self._record_scheduler(scheduler_stats)
        if iteration_stats is not None:
            self._record_step(iteration_stats)

    def log_engine_initialized(self) -> None:
        """Do nothing: vLLM's own server writes its cache configuration to the log here."""

    def _record_scheduler(self, stats: Any) -> None:
        metrics = self._metrics
        metrics.set("num_requests_running", stats.num_running_reqs)
        metrics.set("num_requests_waiting", stats.num_waiting_reqs)
        metrics.set("kv_cache_usage_perc", stats.kv_cache_usage)
        prefix = stats.prefix_cache_stats
        if prefix is not None:
            metrics.increment("prefix_cache_queries_total", prefix.queries)
            metrics.increment("prefix_cache_hits_total", prefix.hits)

    def _record_step(self, stats: Any) -> None:
        metrics = self._metrics
        metrics.increment("prompt_tokens_total", stats.num_prompt_tokens)
        metrics.increment("generation_tokens_total", stats.num_generation_tokens)
        metrics.increment("num_preemptions_total", stats.num_preempted_reqs)
        metrics.observe("time_to_first_token_seconds", *stats.time_to_first_tokens_iter)
        metrics.observe("time_per_output_token_seconds", *stats.inter_token_latencies_iter)
        metrics.observe("request_params_n", *stats.n_params_iter)
        for finished in stats.finished_requests:
            metrics.count_success(str(finished.finish_reason))
            metrics.observe("e2e_request_latency_seconds", finished.e2e_latency)
            metrics.observe("request_prompt_tokens", finished.num_prompt_tokens)
            metrics.observe("request_generation_tokens", finished.num_generation_tokens)
            metrics.observe("request_queue_time_seconds", finished.queued_time)
            metrics.observe("request_prefill_time_seconds", finished.prefill_time)
            metrics.observe("request_decode_time_seconds", finished.decode_time)


def logger_factory(model: str, version: str) -> Callable[[Any, int], StatisticsLogger]:
    """Return the function that makes the logger of an engine, as vLLM calls it."""
    labels = {"model": model, "version": version}

    def make(config: Any, index: int = 0) -> StatisticsLogger:
        return StatisticsLogger(labels, config, index)

    return make
