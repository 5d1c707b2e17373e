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


class _Metrics:
    """The metrics of one engine."""

    def __init__(self, labels: dict[str, str], max_model_len: int) -> None:
        self._labels = labels
        self._families: list[Any] = []
        lengths = length_buckets(max_model_len)
        self.prompt_tokens = self._metric(
            "prompt_tokens_total", "Number of prefill tokens processed.", _COUNTER
        )
        self.generation_tokens = self._metric(
            "generation_tokens_total", "Number of generation tokens processed.", _COUNTER
        )
        self.first_token = self._histogram(
            "time_to_first_token_seconds", "Time to the first token in seconds.", _FIRST_TOKEN_S
        )
        self.output_token = self._histogram(
            "time_per_output_token_seconds", "Time per output token in seconds.", _TOKEN_S
        )
        self.request = self._histogram(
            "e2e_request_latency_seconds", "Time of a request in seconds.", _REQUEST_S
        )
        self.request_prompt = self._histogram(
            "request_prompt_tokens", "Number of prefill tokens of a request.", lengths
        )
        self.request_generation = self._histogram(
            "request_generation_tokens", "Number of generated tokens of a request.", lengths
        )
        self.choices = self._histogram(
            "request_params_n", "The parameter n of a request.", _CHOICES
        )
        self.queue = self._histogram(
            "request_queue_time_seconds", "Time that a request waited in seconds.", _PART_S
        )
        self.prefill = self._histogram(
            "request_prefill_time_seconds", "Time of the prefill in seconds.", _PART_S
        )
        self.decode = self._histogram(
            "request_decode_time_seconds", "Time of the decoding in seconds.", _PART_S
        )
        self.running = self._metric(
            "num_requests_running", "Number of requests that the engine executes.", _GAUGE
        )
        self.waiting = self._metric(
            "num_requests_waiting", "Number of requests that wait for the engine.", _GAUGE
        )
        self.cache_usage = self._metric(
            "kv_cache_usage_perc", "Used part of the key-value cache, 1 for all of it.", _GAUGE
        )
        self.prefix_queries = self._metric(
            "prefix_cache_queries_total", "Tokens looked up in the prefix cache.", _COUNTER
        )
        self.prefix_hits = self._metric(
            "prefix_cache_hits_total", "Tokens found in the prefix cache.", _COUNTER
        )
        self.preemptions = self._metric(
            "num_preemptions_total", "Number of preempted requests.", _COUNTER
        )
        self._success = pb_utils.MetricFamily(
            name="vllm:request_success_total",
            description="Number of completed requests by reason.",
            kind=_COUNTER,
        )
        self._success_by_reason: dict[str, Any] = {}

    def count_success(self, reason: str) -> None:
        """Count a completed request."""
        metric = self._success_by_reason.get(reason)
        if metric is None:
            labels = {**self._labels, "finished_reason": reason}
            metric = self._success_by_reason[reason] = self._success.Metric(labels=labels)
        metric.increment(1)

    def _metric(self, name: str, description: str, kind: Any, **options: Any) -> Any:
        family = pb_utils.MetricFamily(name=f"vllm:{name}", description=description, kind=kind)
        self._families.append(family)
        return family.Metric(labels=self._labels, **options)

    def _histogram(self, name: str, description: str, buckets: list[Any]) -> Any:
        return self._metric(name, description, _HISTOGRAM, buckets=buckets)


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
        metrics.running.set(stats.num_running_reqs)
        metrics.waiting.set(stats.num_waiting_reqs)
        metrics.cache_usage.set(stats.kv_cache_usage)
        prefix = stats.prefix_cache_stats
        if prefix is not None:
            _increment(metrics.prefix_queries, prefix.queries)
            _increment(metrics.prefix_hits, prefix.hits)

    def _record_step(self, stats: Any) -> None:
        metrics = self._metrics
        _increment(metrics.prompt_tokens, stats.num_prompt_tokens)
        _increment(metrics.generation_tokens, stats.num_generation_tokens)
        _increment(metrics.preemptions, stats.num_preempted_reqs)
        for metric, values in (
            (metrics.first_token, stats.time_to_first_tokens_iter),
            (metrics.output_token, stats.inter_token_latencies_iter),
            (metrics.choices, stats.n_params_iter),
        ):
            for value in values:
                metric.observe(value)
        for finished in stats.finished_requests:
            metrics.count_success(str(finished.finish_reason))
            metrics.request.observe(finished.e2e_latency)
            metrics.request_prompt.observe(finished.num_prompt_tokens)
            metrics.request_generation.observe(finished.num_generation_tokens)
            metrics.queue.observe(finished.queued_time)
            metrics.prefill.observe(finished.prefill_time)
            metrics.decode.observe(finished.decode_time)


def logger_factory(model: str, version: str) -> Callable[[Any, int], StatisticsLogger]:
    """Return the function that makes the logger of an engine, as vLLM calls it."""
    labels = {"model": model, "version": version}

    def make(config: Any, index: int = 0) -> StatisticsLogger:
        return StatisticsLogger(labels, config, index)

    return make


def _increment(metric: Any, value: float) -> None:
    if value:
        metric.increment(value)
