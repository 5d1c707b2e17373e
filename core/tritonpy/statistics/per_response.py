"""Statistics of single responses, for models and servers that need them."""

from __future__ import annotations

from typing import Protocol

from tritonpy.api.engine import GpuShare, ResponseStatistics, SummarySnapshot
from tritonpy.clock import now_ns
from tritonpy.config.server.latency_settings import LatencySettings, parse_quantiles
from tritonpy.custom_metrics import HistogramSnapshot
from tritonpy.statistics.decoupled_responses import DecoupledResponseCounters
from tritonpy.statistics.first_responses import FirstResponseHistogram, configured_buckets
from tritonpy.statistics.gpu_counters import GpuCounters, configured_gpus
from tritonpy.statistics.summaries import LatencySummaries
from tritonpy.types import Batch, InferRequest, InferResponse
from tritonpy_protos.model_config_pb2 import ModelConfig


class PerResponseCounter(Protocol):
    """A counter of every response.

    It is called under the model's lock, before the response is sent.
    """

    def responded(self, request: InferRequest, response: InferResponse, handed_ns: int, now_ns: int) -> None:
        """Count a response that the backend sent at `handed_ns`.

        All time stamps of its execution are set by then.
        """


class PerResponseStatistics:
    """The response counters of one model version. `counters` holds the enabled ones.

    Raises InvalidArgument if histogram buckets do not ascend.
    """

    def __init__(self, config: ModelConfig, latencies: LatencySettings) -> None:
        buckets = configured_buckets(config)
        self._responses = DecoupledResponseCounters() if config.model_transaction_policy.decoupled else None
        self._first = FirstResponseHistogram(buckets) if latencies.histograms else None
        self._summaries = (
            LatencySummaries(parse_quantiles(latencies.quantiles), now_ns()) if latencies.summaries else None
        )
        gpus = configured_gpus(config)
        self._gpus = GpuCounters(gpus) if gpus else None
        found: list[PerResponseCounter | None] = [self._responses, self._first, self._summaries, self._gpus]
        self.counters = tuple(each for each in found if each is not None)

    def use_cache(self) -> None:
        """Measure the response cache, too. Call it before the first request."""
        if self._summaries is not None:
            self._summaries.use_cache(now_ns())

    def executed(self, batch: Batch) -> None:
        """Count one execution, before the first of its responses."""
        if self._gpus is not None:
            self._gpus.executed(batch)

    def responses(self) -> dict[str, ResponseStatistics]:
        """Return the times of a decoupled model's responses by their index."""
        return {} if self._responses is None else self._responses.snapshot()

    def first_response(self) -> HistogramSnapshot | None:
        """Return the histogram of first responses, None if it is disabled."""
        return None if self._first is None else self._first.snapshot()

    def summaries(self) -> dict[str, SummarySnapshot]:
        """Return the summaries by part, empty if they are disabled."""
        return {} if self._summaries is None else self._summaries.snapshot(now_ns())

    def shares(self, name: str, version: int) -> list[GpuShare]:
        """Return the counts per GPU, empty for a model without instances on GPUs."""
        return [] if self._gpus is None else self._gpus.snapshot(name, version)
