"""Latencies of one model version as summaries: quantiles of the last minute."""

from __future__ import annotations

from tritonpy.api.engine import SummarySnapshot
from tritonpy.config.server.latency_settings import Quantiles
from tritonpy.statistics.summary import Summary
from tritonpy.types import ComputeTimes, InferRequest, InferResponse

PARTS = ("request", "queue", "compute_input", "compute_infer", "compute_output")
CACHE_PARTS = ("cache_hit", "cache_miss")


class LatencySummaries:
    """One summary in whole µs per part of a request's time, for successful requests.

    They change under the model's lock.
    """

    def __init__(self, quantiles: Quantiles, now_ns: int) -> None:
        self._quantiles = quantiles
        self._parts = {part: Summary(quantiles, now_ns) for part in PARTS}

    def use_cache(self, now_ns: int) -> None:
        """Summarize cache hits and misses instead of whole requests, as Triton does.

        Call it before the first request.
        """
        del self._parts["request"]
        self._parts.update((part, Summary(self._quantiles, now_ns)) for part in CACHE_PARTS)

    def responded(self, request: InferRequest, response: InferResponse, _handed_ns: int, now_ns: int) -> None:
        """Record the times of a request at its final response."""
        if not response.final or response.error is not None:
            return
        lookup, batch = request.cache, request.batch
        times = {}
        if "request" in self._parts:
            times["request"] = now_ns - request.received_ns
        if lookup is not None and lookup.hit:
            times["queue"] = lookup.start_ns - request.queued_ns
            times["cache_hit"] = lookup.lookup_ns
        else:
            work = (request.compute_times or ComputeTimes(now_ns)) if batch is None else ComputeTimes.of(batch, now_ns)
            times["queue"] = work.start_ns - request.queued_ns
            times["compute_input"], times["compute_infer"] = work.input_ns, work.infer_ns
            times["compute_output"] = work.output_ns
            if lookup is not None:
                times["cache_miss"] = lookup.cache_ns
        for part, time_ns in times.items():
            self._parts[part].observe(time_ns // 1000, now_ns)

    def snapshot(self, now_ns: int) -> dict[str, SummarySnapshot]:
        """Return the summaries by part."""
        return {part: summary.snapshot(now_ns) for part, summary in self._parts.items()}
