"""vLLM's statistics as metrics of the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vllm.v1.metrics.loggers import StatLoggerBase

from tritonpy_text_backend.metrics import GenerationMetrics


class StatisticsLogger(StatLoggerBase):  # type: ignore[misc] # mypy does not know vLLM
    """Receives the statistics of each step of the engine, on its event loop."""

    def __init__(self, labels: dict[str, str], vllm_config: Any, engine_index: int) -> None:
        self.engine_index = engine_index
        self._metrics = GenerationMetrics(labels, vllm_config.model_config.max_model_len)

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
