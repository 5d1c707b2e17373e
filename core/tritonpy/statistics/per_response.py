"""Statistics of single responses, for models and servers that need them."""

from __future__ import annotations

import logging
from collections import defaultdict, deque
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Protocol

from tritonpy.api.engine import Duration, GpuShare, ResponseStatistics, SummarySnapshot
from tritonpy.statistics.counters import Counters, SucceededRequests
from tritonpy_config.server.sections import LatencySettings, Quantiles, parse_quantiles
from tritonpy_metrics import HistogramSnapshot
from tritonpy_metrics.quantile_sketch import QuantileSketch
from tritonpy_metrics.registry import Histogram
from tritonpy_protos.model_config_pb2 import ModelConfig, ModelInstanceGroup
from tritonpy_types import Batch, ComputeTimes, InferRequest, InferResponse
from tritonpy_types.clock import now_ns
from tritonpy_types.errors import Code

log = logging.getLogger("tritonpy.model")

FAMILY = "nv_inference_first_response_histogram_ms"
DEFAULT_BUCKETS = (100.0, 500.0, 2000.0, 5000.0)


PARTS = ("request", "queue", "compute_input", "compute_infer", "compute_output")
CACHE_PARTS = ("cache_hit", "cache_miss")


AGE_NS = 60_000_000_000
"""Quantiles cover the last minute, count and sum the whole time."""
SKETCHES = 5
ROTATION_NS = AGE_NS // SKETCHES
BUFFER = 500


class Summary:
    """A summary that buffers observations and sorts many at once. It is not thread-safe.

    Every sketch gets every value, and quantiles come from the oldest sketch. A rotation replaces it
    with an empty one, so that quantiles cover the last 48 to 60 s.
    """

    def __init__(self, quantiles: Quantiles, now_ns: int) -> None:
        self._quantiles = quantiles
        self._count = 0
        self._sum = 0
        self._buffer: list[int] = []
        self._sketches = deque(QuantileSketch(quantiles) for _ in range(SKETCHES))
        self._rotation_ns = now_ns + ROTATION_NS

    def observe(self, value: int, now_ns: int) -> None:
        """Record one value."""
        self._count += 1
        self._sum += value
        if now_ns >= self._rotation_ns or len(self._buffer) >= BUFFER:
            self._flush(now_ns)
        self._buffer.append(value)

    def snapshot(self, now_ns: int) -> SummarySnapshot:
        """Return count, sum and quantiles. A quantile without values is None."""
        self._flush(now_ns)
        oldest = self._sketches[0]
        return SummarySnapshot(
            self._count, self._sum, [(each, oldest.quantile(each)) for each in self._quantiles]
        )

    def _flush(self, now_ns: int) -> None:
        self._buffer.sort()
        for sketch in self._sketches:
            sketch.add(self._buffer)
        self._buffer.clear()
        if now_ns < self._rotation_ns:
            return
        rotations = (now_ns - self._rotation_ns) // ROTATION_NS + 1
        self._rotation_ns += rotations * ROTATION_NS
        for _ in range(min(rotations, SKETCHES)):
            self._sketches.popleft()
            self._sketches.append(QuantileSketch(self._quantiles))


@dataclass(slots=True)
class _Progress:
    """The progress of one request: index of the next response, and time of the last one."""

    index: int
    since_ns: int


class DecoupledResponseCounters:
    """Counts per response index, changed under the model's lock.

    A response's time begins with the execution, or with the previous response. `compute_infer`
    lasts until the backend sends it, `compute_output` until it is counted. Requests that were never
    executed are left out.
    """

    def __init__(self) -> None:
        self._by_index: defaultdict[int, ResponseStatistics] = defaultdict(_nothing)
        self._in_flight: dict[InferRequest, _Progress] = {}

    def responded(
        self, request: InferRequest, response: InferResponse, handed_ns: int, now_ns: int
    ) -> None:
        """Count one response that the backend sent at `handed_ns`."""
        progress = self._in_flight.pop(request, None)
        if request.batch is None:
            return
        if progress is None:
            progress = _Progress(0, request.batch.start_ns)
        # another thread's response to this request may have been counted meanwhile
        handed_ns = max(handed_ns, progress.since_ns)
        _count(self._by_index[progress.index], response, progress.since_ns, handed_ns, now_ns)
        if not response.final:
            self._in_flight[request] = _Progress(progress.index + 1, now_ns)

    def snapshot(self) -> dict[str, ResponseStatistics]:
        """Return the protocol statistics by index, as text."""
        return {str(index): deepcopy(self._by_index[index]) for index in sorted(self._by_index)}


def _nothing() -> ResponseStatistics:
    return ResponseStatistics(*(Duration() for _ in range(6)))


def _count(
    statistics: ResponseStatistics,
    response: InferResponse,
    start_ns: int,
    handed_ns: int,
    end_ns: int,
) -> None:
    if response.error is not None and response.error.code is Code.CANCELLED:
        _add(statistics.cancel, end_ns - start_ns)
    elif response.error is not None:
        _add(statistics.compute_infer, end_ns - start_ns)
        _add(statistics.fail, end_ns - start_ns)
    elif not response.outputs:
        _add(statistics.compute_infer, end_ns - start_ns)
        _add(statistics.empty_response, end_ns - start_ns)
    else:
        _add(statistics.compute_infer, handed_ns - start_ns)
        _add(statistics.compute_output, end_ns - handed_ns)
        _add(statistics.success, end_ns - start_ns)


def _add(duration: Duration, ns: int) -> None:
    duration.count += 1
    duration.ns += ns


def configured_gpus(config: ModelConfig) -> list[int]:
    """Return the numbers of the GPUs with instances of the model."""
    on_gpus = [
        group for group in config.instance_group if group.kind == ModelInstanceGroup.KIND_GPU
    ]
    return sorted({number for group in on_gpus for number in group.gpus})


class GpuCounters:
    """Counts per GPU, and without a GPU (None). Their sum is the model's counts.

    They change under the model's lock.
    """

    def __init__(self, gpus: Sequence[int]) -> None:
        self._counters: dict[int | None, Counters] = {gpu: Counters() for gpu in (None, *gpus)}

    def executed(self, batch: Batch) -> None:
        """Count one execution."""
        self._counters[_gpu_of(batch)].executions += 1

    def responded(
        self, request: InferRequest, response: InferResponse, _handed_ns: int, now_ns: int
    ) -> None:
        """Count a request at its final response."""
        if not response.final:
            return
        batch = request.batch
        counters, total_ns = self._counters[_gpu_of(batch)], now_ns - request.received_ns
        if response.error is not None:
            counters.failed(response.error.reason, total_ns)
            return
        lookup = request.cache
        if lookup is not None and lookup.hit:
            counters.cache_hit(total_ns, lookup.start_ns - request.queued_ns, lookup.lookup_ns)
            return
        if lookup is not None:
            self._counters[None].cache_missed(lookup.cache_ns)  # not a GPU's work
        queue_ns = (now_ns if batch is None else batch.start_ns) - request.queued_ns
        counters.succeeded(
            SucceededRequests(batch, now_ns, 1, request.batch_size, total_ns, queue_ns)
        )

    def snapshot(self, name: str, version: int) -> list[GpuShare]:
        """Return the counts of each GPU, first those without one."""
        return [
            GpuShare(gpu, counters.snapshot(name, version, {}), dict(counters.failures))
            for gpu, counters in self._counters.items()
        ]


def _gpu_of(batch: Batch | None) -> int | None:
    if batch is None:
        return None
    context = batch.instance.context
    return int(context.device_id) if context.kind == "GPU" else None


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

    def responded(
        self, request: InferRequest, response: InferResponse, _handed_ns: int, now_ns: int
    ) -> None:
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
            work = (
                (request.compute_times or ComputeTimes(now_ns))
                if batch is None
                else ComputeTimes.of(batch, now_ns)
            )
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


class FirstResponseHistogram:
    """Milliseconds from a request's arrival to its first response, also for errors.

    An empty final response does not count. It changes under the model's lock. Raises
    InvalidArgument if the buckets do not ascend.
    """

    def __init__(self, buckets: Sequence[float]) -> None:
        self._histogram = Histogram(buckets)
        self._started: set[InferRequest] = set()

    def responded(
        self, request: InferRequest, response: InferResponse, _handed_ns: int, now_ns: int
    ) -> None:
        """Count one response."""
        if not response.empty and request not in self._started:
            self._histogram.observe((now_ns - request.received_ns) // 1_000_000)
        if response.final:
            self._started.discard(request)
        else:
            self._started.add(request)

    def snapshot(self) -> HistogramSnapshot | None:
        """Return the histogram."""
        return self._histogram.snapshot({}).histogram


def configured_buckets(config: ModelConfig) -> Sequence[float]:
    """Return the buckets of the model's `model_metrics`, or Triton's.

    Warns of families without buckets.
    """
    buckets: Sequence[float] = DEFAULT_BUCKETS
    for control in config.model_metrics.metric_control:
        if control.metric_identifier.family == FAMILY:
            buckets = list(control.histogram_options.buckets)
        else:
            log.warning(
                (
                    "model '%s': metric family '%s' in 'metric_identifier' has no configurable "
                    "buckets; %s has them"
                ),
                config.name, control.metric_identifier.family, FAMILY,
            )  # fmt: skip
    return buckets


class PerResponseCounter(Protocol):
    """A counter of every response.

    It is called under the model's lock, before the response is sent.
    """

    def responded(
        self, request: InferRequest, response: InferResponse, handed_ns: int, now_ns: int
    ) -> None:
        """Count a response that the backend sent at `handed_ns`.

        All time stamps of its execution are set by then.
        """


class PerResponseStatistics:
    """The response counters of one model version. `counters` holds the enabled ones.

    Raises InvalidArgument if histogram buckets do not ascend.
    """

    def __init__(self, config: ModelConfig, latencies: LatencySettings) -> None:
        buckets = configured_buckets(config)
        self._responses = (
            DecoupledResponseCounters() if config.model_transaction_policy.decoupled else None
        )
        self._first = FirstResponseHistogram(buckets) if latencies.histograms else None
        self._summaries = (
            LatencySummaries(parse_quantiles(latencies.quantiles), now_ns())
            if latencies.summaries
            else None
        )
        gpus = configured_gpus(config)
        self._gpus = GpuCounters(gpus) if gpus else None
        found: list[PerResponseCounter | None] = [
            self._responses,
            self._first,
            self._summaries,
            self._gpus,
        ]
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
