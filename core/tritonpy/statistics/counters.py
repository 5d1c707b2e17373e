"""Counts and times of the requests and executions of one model version."""

from __future__ import annotations

from dataclasses import dataclass, field

from tritonpy.api.engine import (
    BatchStatistics,
    Duration,
    InferStatistics,
    ModelStatistics,
    ResponseStatistics,
)
from tritonpy_types import Batch, ComputeTimes
from tritonpy_types.clock import epoch_ms
from tritonpy_types.errors import FailureReason


@dataclass(slots=True)
class _Execution:
    """Executions of one batch size, in ns."""

    count: int = 0
    input_ns: int = 0
    infer_ns: int = 0
    output_ns: int = 0

    def add(self, work: ComputeTimes) -> None:
        """Count one execution."""
        self.count += 1
        self.input_ns += work.input_ns
        self.infer_ns += work.infer_ns
        self.output_ns += work.output_ns


@dataclass(slots=True)
class SucceededRequests:
    """Requests of one batch that ended successfully together. Times are sums in ns.

    The batch is None for a scheduler without instances.
    """

    batch: Batch | None
    end_ns: int
    count: int = 0
    rows: int = 0
    total_ns: int = 0
    queue_ns: int = 0


@dataclass(slots=True)
class Counters:
    """Plain numbers that change under the model's lock."""

    success: int = 0
    success_ns: int = 0
    queue_ns: int = 0
    input_ns: int = 0
    infer_ns: int = 0
    output_ns: int = 0
    fail: int = 0
    fail_ns: int = 0
    inferences: int = 0
    executions: int = 0
    last_inference_ms: int = 0
    late_responses: int = 0
    cache_hits: int = 0
    cache_hit_ns: int = 0
    cache_misses: int = 0
    cache_miss_ns: int = 0
    failures: dict[str, int] = field(
        default_factory=lambda: {reason.value: 0 for reason in FailureReason}
    )
    batches: dict[int, _Execution] = field(default_factory=dict)

    def executed(self, batch: Batch, end_ns: int) -> None:
        """Count one execution. Time stamps that the backend did not set are filled in."""
        self._add_execution(batch, batch.size, end_ns)

    def _add_execution(self, batch: Batch, size: int, end_ns: int) -> tuple[int, int, int]:
        """Count one execution; return its times for input, inference and output in ns."""
        batch.counted = True
        start_ns, input_end_ns, infer_end_ns = (
            batch.start_ns,
            batch.input_end_ns,
            batch.infer_end_ns,
        )
        if not input_end_ns:
            batch.input_end_ns = input_end_ns = start_ns
        if not infer_end_ns:
            batch.infer_end_ns = infer_end_ns = end_ns
        input_ns, infer_ns = input_end_ns - start_ns, infer_end_ns - input_end_ns
        output_ns = end_ns - infer_end_ns
        self.executions += 1
        self.last_inference_ms = epoch_ms()
        execution = self.batches.get(size)
        if execution is None:
            execution = self.batches[size] = _Execution()
        execution.count += 1
        execution.input_ns += input_ns
        execution.infer_ns += infer_ns
        execution.output_ns += output_ns
        return input_ns, infer_ns, output_ns

    def batch_succeeded(
        self, batch: Batch, rows: int, received_ns: int, queued_ns: int, end_ns: int
    ) -> None:
        """Count an execution whose requests all ended successfully with its only responses.

        `rows`, `received_ns` and `queued_ns` are sums over the requests.
        """
        count, slots = len(batch.requests), batch.slots
        size = rows if slots is None else len(slots)
        input_ns, infer_ns, output_ns = self._add_execution(batch, size, end_ns)
        self.success += count
        self.inferences += rows
        self.success_ns += count * end_ns - received_ns
        self.queue_ns += count * batch.start_ns - queued_ns
        self.input_ns += count * input_ns
        self.infer_ns += count * infer_ns
        self.output_ns += count * max(output_ns, 0)

    def succeeded(self, done: SucceededRequests) -> None:
        """Count the requests of one batch that ended successfully together."""
        batch, count = done.batch, done.count
        self.success += count
        self.inferences += done.rows
        self.success_ns += done.total_ns
        self.queue_ns += done.queue_ns
        if batch is not None:
            self.input_ns += count * (batch.input_end_ns - batch.start_ns)
            self.infer_ns += count * (batch.infer_end_ns - batch.input_end_ns)
            self.output_ns += count * max(done.end_ns - batch.infer_end_ns, 0)

    def add_compute_times(
        self, work: ComputeTimes, batch: Batch | None, rows: int, end_ns: int
    ) -> None:
        """Add the compute times of one request of `batch` to `work`.

        A request without a batch was computed by other models and counts as an execution.
        """
        if batch is not None:
            work.add(ComputeTimes.of(batch, end_ns))
            return
        self.executions += 1
        self.last_inference_ms = epoch_ms()
        self.input_ns += work.input_ns
        self.infer_ns += work.infer_ns
        self.output_ns += work.output_ns
        self.batches.setdefault(rows, _Execution()).add(work)

    def cache_hit(self, total_ns: int, queue_ns: int, lookup_ns: int) -> None:
        """Count one request that the cache served: a success without an inference."""
        self.success += 1
        self.success_ns += total_ns
        self.queue_ns += queue_ns
        self.cache_hits += 1
        self.cache_hit_ns += lookup_ns

    def cache_missed(self, cache_ns: int) -> None:
        """Add the cache times of a successful request.

        They are the look-up, and the insertion if it preceded the response.
        """
        self.cache_misses += 1
        self.cache_miss_ns += cache_ns

    def cache_inserted(self, insertion_ns: int) -> None:
        """Add the time of an insertion after the response."""
        self.cache_miss_ns += insertion_ns

    def failed(self, reason: FailureReason, total_ns: int) -> None:
        """Count one request that ended with an error after `total_ns`."""
        self.fail += 1
        self.fail_ns += total_ns
        self.failures[reason.value] += 1

    def snapshot(
        self, name: str, version: int, responses: dict[str, ResponseStatistics]
    ) -> ModelStatistics:
        """Return the counters as protocol statistics."""
        computed = self.success - self.cache_hits
        return ModelStatistics(
            name=name,
            version=str(version),
            last_inference=self.last_inference_ms,
            inference_count=self.inferences,
            execution_count=self.executions,
            inference_stats=InferStatistics(
                success=Duration(self.success, self.success_ns),
                fail=Duration(self.fail, self.fail_ns),
                queue=Duration(self.success, self.queue_ns),
                compute_input=Duration(computed, self.input_ns),
                compute_infer=Duration(computed, self.infer_ns),
                compute_output=Duration(computed, self.output_ns),
                cache_hit=Duration(self.cache_hits, self.cache_hit_ns),
                cache_miss=Duration(self.cache_misses, self.cache_miss_ns),
            ),
            response_stats=responses,
            batch_stats=[
                BatchStatistics(
                    size,
                    Duration(execution.count, execution.input_ns),
                    Duration(execution.count, execution.infer_ns),
                    Duration(execution.count, execution.output_ns),
                )
                for size, execution in sorted(self.batches.items())
            ],
            memory_usage=[],
        )
