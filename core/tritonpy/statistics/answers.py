"""What is counted of each single answer, for the models where that is asked for; the others have none of it."""

from __future__ import annotations

from typing import Protocol

from tritonpy.api.engine import GpuShare, ResponseStatistics, SummarySnapshot
from tritonpy.clock import now_ns
from tritonpy.config.server.latency_settings import LatencySettings, parse_quantiles
from tritonpy.custom_metrics import HistogramSnapshot
from tritonpy.statistics.first_responses import FirstResponses, buckets_of
from tritonpy.statistics.gpus import GpuCounters, gpus_of
from tritonpy.statistics.responses import ResponseCounters
from tritonpy.statistics.summaries import Summaries
from tritonpy.types import Batch, InferRequest, InferResponse
from tritonpy_protos.model_config_pb2 import ModelConfig


class AnswerCounter(Protocol):
    """Takes note of every answer, under the model's lock and before the answer is sent."""

    def answered(self, request: InferRequest, response: InferResponse, handed_ns: int, now_ns: int) -> None:
        """Count an answer that the backend handed over at `handed_ns`; the execution it belongs to has all its time stamps."""


class AnswerStatistics:
    """The answer counters of one model version: `counters` are those that it has. Raises InvalidArgument for buckets that do not ascend."""

    def __init__(self, config: ModelConfig, latencies: LatencySettings) -> None:
        buckets = buckets_of(config)
        self._responses = ResponseCounters() if config.model_transaction_policy.decoupled else None
        self._first = FirstResponses(buckets) if latencies.histograms else None
        self._summaries = Summaries(parse_quantiles(latencies.quantiles), now_ns()) if latencies.summaries else None
        gpus = gpus_of(config)
        self._gpus = GpuCounters(gpus) if gpus else None
        found: list[AnswerCounter | None] = [self._responses, self._first, self._summaries, self._gpus]
        self.counters = tuple(each for each in found if each is not None)

    def use_cache(self) -> None:
        """Measure what a response cache does; before the first request."""
        if self._summaries is not None:
            self._summaries.use_cache(now_ns())

    def executed(self, batch: Batch) -> None:
        """Count one execution, before the first of its answers."""
        if self._gpus is not None:
            self._gpus.executed(batch)

    def responses(self) -> dict[str, ResponseStatistics]:
        """Return the times of a decoupled model's answers by their place."""
        return {} if self._responses is None else self._responses.snapshot()

    def first_response(self) -> HistogramSnapshot | None:
        """Return the histogram of first responses, None where it is off."""
        return None if self._first is None else self._first.snapshot()

    def summaries(self) -> dict[str, SummarySnapshot]:
        """Return the summaries by part, none where they are off."""
        return {} if self._summaries is None else self._summaries.snapshot(now_ns())

    def shares(self, name: str, version: int) -> list[GpuShare]:
        """Return the shares of the GPUs in what is counted, none for a model without instances on GPUs."""
        return [] if self._gpus is None else self._gpus.snapshot(name, version)
