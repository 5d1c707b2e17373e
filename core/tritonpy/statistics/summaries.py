"""The latencies of one model version as summaries: quantiles of the last minute."""

from __future__ import annotations

from tritonpy.api.engine import SummarySnapshot
from tritonpy.config.server.latency_settings import Quantiles
from tritonpy.statistics.summary import Summary
from tritonpy.types import InferRequest, InferResponse, Work

PARTS = ("request", "queue", "compute_input", "compute_infer", "compute_output")
CACHE_PARTS = ("cache_hit", "cache_miss")


class Summaries:
    """One summary in whole µs per part of a request's time; of requests that succeed, as they end. Changed under the model's lock."""

    def __init__(self, quantiles: Quantiles, now_ns: int) -> None:
        self._quantiles = quantiles
        self._parts = {part: Summary(quantiles, now_ns) for part in PARTS}

    def use_cache(self, now_ns: int) -> None:
        """Summarize hits and misses too, and the whole request no longer, as Triton does; before the first request."""
        del self._parts["request"]
        self._parts.update((part, Summary(self._quantiles, now_ns)) for part in CACHE_PARTS)

    def answered(self, request: InferRequest, response: InferResponse, _handed_ns: int, now_ns: int) -> None:
        """Take note of one answer."""
        if not response.final or response.error is not None:
            return
        look, batch = request.cache, request.batch
        times = {}
        if "request" in self._parts:
            times["request"] = now_ns - request.received_ns
        if look is not None and look.hit:
            times["queue"] = look.start_ns - request.queued_ns
            times["cache_hit"] = look.lookup_ns
        else:
            work = (request.work or Work(now_ns)) if batch is None else Work.of(batch, now_ns)
            times["queue"] = work.start_ns - request.queued_ns
            times["compute_input"], times["compute_infer"] = work.input_ns, work.infer_ns
            times["compute_output"] = work.output_ns
            if look is not None:
                times["cache_miss"] = look.cache_ns
        for part, time_ns in times.items():
            self._parts[part].observe(time_ns // 1000, now_ns)

    def snapshot(self, now_ns: int) -> dict[str, SummarySnapshot]:
        """Return the summaries by part."""
        return {part: summary.snapshot(now_ns) for part, summary in self._parts.items()}
