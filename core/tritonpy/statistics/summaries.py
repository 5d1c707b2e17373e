"""The latencies of one model version as summaries: quantiles of the last minute."""

from __future__ import annotations

from tritonpy.api.engine import SummarySnapshot
from tritonpy.config.server.latency_settings import Quantiles
from tritonpy.statistics.summary import Summary
from tritonpy.types import InferRequest, InferResponse

PARTS = ("request", "queue", "compute_input", "compute_infer", "compute_output")


class Summaries:
    """One summary in whole µs per part of a request's time; of requests that succeed, as they end. Changed under the model's lock."""

    def __init__(self, quantiles: Quantiles, now_ns: int) -> None:
        self._parts = [Summary(quantiles, now_ns) for _ in PARTS]

    def answered(self, request: InferRequest, response: InferResponse, _handed_ns: int, now_ns: int) -> None:
        """Take note of one answer."""
        if not response.final or response.error is not None:
            return
        batch = request.batch
        if batch is None:
            computed, compute = now_ns, (0, 0, 0)
        else:
            computed = batch.start_ns
            compute = (
                batch.input_end_ns - batch.start_ns,
                batch.infer_end_ns - batch.input_end_ns,
                max(now_ns - batch.infer_end_ns, 0),
            )
        times = (now_ns - request.received_ns, computed - request.queued_ns, *compute)
        for summary, time_ns in zip(self._parts, times, strict=True):
            summary.observe(time_ns // 1000, now_ns)

    def snapshot(self, now_ns: int) -> dict[str, SummarySnapshot]:
        """Return the summaries by part."""
        return {part: summary.snapshot(now_ns) for part, summary in zip(PARTS, self._parts, strict=True)}
