from __future__ import annotations

from tritonpy.api.engine import Duration
from tritonpy.statistics import Counters, SucceededRequests
from tritonpy_types import Batch, ComputeTimes, InferRequest
from tritonpy_types.errors import FailureReason


def batch_of(rows: int, start: int, input_end: int = 0, infer_end: int = 0) -> Batch:
    request = InferRequest("m", {}, None, batch_size=rows)
    return Batch([request], start_ns=start, input_end_ns=input_end, infer_end_ns=infer_end)


def test_an_execution_is_counted_by_its_batch_size() -> None:
    counters = Counters()
    for rows, start in ((2, 0), (1, 1000), (2, 2000)):
        counters.executed(batch_of(rows, start, start + 10, start + 30), start + 60)
    statistics = counters.snapshot("m", 3, {})
    assert (statistics.name, statistics.version, statistics.execution_count) == ("m", "3", 3)
    assert statistics.last_inference > 0
    (one, two) = statistics.batch_stats
    assert (one.batch_size, one.compute_infer) == (1, Duration(1, 20))
    assert (two.compute_input, two.compute_infer, two.compute_output) == (
        Duration(2, 20),
        Duration(2, 40),
        Duration(2, 60),
    )


def test_stamps_that_the_backend_did_not_set_count_as_inference() -> None:
    counters = Counters()
    batch = batch_of(1, 100)
    counters.executed(batch, 160)
    assert batch.counted
    assert (batch.input_end_ns, batch.infer_end_ns) == (100, 160)


def test_requests_that_share_a_batch_each_count_its_times() -> None:
    counters = Counters()
    batch = batch_of(4, 100, 110, 130)
    counters.executed(batch, 160)
    counters.succeeded(SucceededRequests(batch, 160, count=3, rows=4, total_ns=300, queue_ns=90))
    statistics = counters.snapshot("m", 1, {})
    times = statistics.inference_stats
    assert statistics.inference_count == 4
    assert (times.success, times.queue) == (Duration(3, 300), Duration(3, 90))
    assert (times.compute_input, times.compute_infer, times.compute_output) == (
        Duration(3, 30), Duration(3, 60), Duration(3, 90),
    )  # fmt: skip


def test_a_scheduler_without_instances_has_no_compute_times() -> None:
    counters = Counters()
    counters.succeeded(SucceededRequests(None, 160, count=1, rows=2, total_ns=50))
    statistics = counters.snapshot("m", 1, {})
    assert (statistics.inference_count, statistics.execution_count) == (2, 0)
    assert statistics.inference_stats.compute_infer.ns == 0


def test_failures_are_counted_by_reason() -> None:
    counters = Counters()
    counters.failed(FailureReason.REJECTED, 5)
    counters.failed(FailureReason.BACKEND, 7)
    assert counters.failures == {"REJECTED": 1, "CANCELED": 0, "BACKEND": 1, "OTHER": 0}
    assert counters.snapshot("m", 1, {}).inference_stats.fail == Duration(2, 12)


def test_a_snapshot_does_not_change() -> None:
    counters = Counters()
    before = counters.snapshot("m", 1, {})
    counters.executed(batch_of(1, 0), 10)
    counters.failed(FailureReason.OTHER, 5)
    assert (before.execution_count, before.batch_stats, before.inference_stats.fail.count) == (
        0,
        [],
        0,
    )


def test_a_cache_hit_is_a_success_without_computation() -> None:
    counters = Counters()
    counters.succeeded(
        SucceededRequests(batch_of(2, 0, 10, 20), 30, count=1, rows=2, total_ns=40, queue_ns=5)
    )
    counters.cache_hit(total_ns=100, queue_ns=7, lookup_ns=9)
    statistics = counters.snapshot("m", 1, {})
    times = statistics.inference_stats
    assert (times.success, times.queue, times.cache_hit) == (
        Duration(2, 140),
        Duration(2, 12),
        Duration(1, 9),
    )
    assert {
        each.count for each in (times.compute_input, times.compute_infer, times.compute_output)
    } == {1}
    assert statistics.inference_count == 2


def test_a_cache_miss_is_part_of_the_request_that_succeeded() -> None:
    counters = Counters()
    counters.succeeded(SucceededRequests(None, 30, count=1, rows=1, total_ns=40))
    counters.cache_missed(15)
    times = counters.snapshot("m", 1, {}).inference_stats
    assert (times.success, times.cache_miss, times.cache_hit) == (
        Duration(1, 40),
        Duration(1, 15),
        Duration(0, 0),
    )


def test_an_insertion_after_the_response_counts_only_for_the_cache() -> None:
    counters = Counters()
    counters.succeeded(SucceededRequests(None, 30, count=1, rows=1, total_ns=40))
    counters.cache_missed(9)
    counters.cache_inserted(6)
    times = counters.snapshot("m", 1, {}).inference_stats
    assert (times.success, times.cache_miss) == (Duration(1, 40), Duration(1, 15))


def test_without_a_cache_its_counts_stay_zero() -> None:
    counters = Counters()
    counters.succeeded(SucceededRequests(None, 30, count=1, rows=1, total_ns=40))
    times = counters.snapshot("m", 1, {}).inference_stats
    assert (times.cache_hit, times.cache_miss) == (Duration(0, 0), Duration(0, 0))


def test_compute_times_of_a_batched_request_are_added() -> None:
    work, counters = ComputeTimes(), Counters()
    counters.add_compute_times(work, batch_of(1, 100, 110, 130), 1, 160)
    assert (work.input_ns, work.infer_ns, work.output_ns) == (10, 20, 30)
    assert counters.executions == 0


def test_a_request_computed_by_other_models_is_an_execution() -> None:
    counters = Counters()
    for rows in (2, 2, 1):
        counters.add_compute_times(ComputeTimes(5, 1, 20, 300), None, rows, 999)
    statistics = counters.snapshot("e", 1, {})
    assert statistics.execution_count == 3
    assert statistics.last_inference > 0
    assert [(each.batch_size, each.compute_infer) for each in statistics.batch_stats] == [
        (1, Duration(1, 20)),
        (2, Duration(2, 40)),
    ]
    assert statistics.inference_stats.compute_output.ns == 900
