from __future__ import annotations

import pytest
from google.protobuf import text_format

from tritonpy.api.contexts import InstanceContext
from tritonpy.api.engine import Duration, ResponseStatistics, SummarySnapshot
from tritonpy.runners.slot import Slot
from tritonpy.statistics import PerResponseStatistics
from tritonpy.statistics.per_response import (
    AGE_NS,
    BUFFER,
    DEFAULT_BUCKETS,
    ROTATION_NS,
    DecoupledResponseCounters,
    FirstResponseHistogram,
    GpuCounters,
    LatencySummaries,
    Summary,
    configured_buckets,
    configured_gpus,
)
from tritonpy_config.server.sections import NO_LATENCIES, LatencySettings
from tritonpy_protos.model_config_pb2 import ModelConfig, ModelInstanceGroup
from tritonpy_types import Batch, InferRequest, InferResponse, Tensor
from tritonpy_types.errors import Cancelled, Internal, InvalidArgument, QueueTimeout
from tritonpy_types.request import CacheLookup


def statistics(
    *, decoupled: bool = False, gpu: bool = False, latencies: LatencySettings = NO_LATENCIES
) -> PerResponseStatistics:
    config = ModelConfig()
    if gpu:
        config.instance_group.add(kind=ModelInstanceGroup.KIND_GPU, gpus=[0])
    config.model_transaction_policy.decoupled = decoupled
    return PerResponseStatistics(config, latencies)


def test_most_models_have_no_counters_per_response() -> None:
    plain = statistics()
    assert plain.counters == ()
    assert (plain.responses(), plain.first_response(), plain.summaries(), plain.shares("m", 1)) == (
        {},
        None,
        {},
        [],
    )


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ({"decoupled": True}, DecoupledResponseCounters),
        ({"gpu": True}, GpuCounters),
        ({"latencies": LatencySettings(histograms=True)}, FirstResponseHistogram),
        ({"latencies": LatencySettings(summaries=True)}, LatencySummaries),
    ],
)
def test_only_the_configured_counters_exist(given: dict[str, object], kind: type) -> None:
    (counter,) = statistics(**given).counters  # type: ignore[arg-type]
    assert type(counter) is kind


def test_all_counters_can_be_enabled_together() -> None:
    every = statistics(
        decoupled=True,
        gpu=True,
        latencies=LatencySettings(histograms=True, summaries=True, quantiles="0.5:0.1"),
    )
    assert len(every.counters) == 4
    assert [share.gpu for share in every.shares("m", 1)] == [None, 0]
    assert every.first_response() is not None
    assert every.summaries()["queue"].quantiles == [(0.5, None)]


def test_a_cache_is_measured_with_summaries() -> None:
    plain, summarized = statistics(), statistics(latencies=LatencySettings(summaries=True))
    for each in (plain, summarized):
        each.use_cache()
    assert plain.summaries() == {}
    assert {"cache_hit", "cache_miss"} < set(summarized.summaries())


MS = 1_000_000


def request() -> InferRequest:
    return InferRequest("m", {}, None, received_ns=5 * MS)


def counts(first: FirstResponseHistogram) -> tuple[list[int], int, float]:
    found = first.snapshot()
    return found.counts, found.count, found.sum


def test_it_counts_whole_milliseconds_since_the_arrival() -> None:
    first = FirstResponseHistogram([1, 10])
    for responded_ns in (6 * MS, 7 * MS - 1, 8 * MS, 905 * MS):
        first.responded(request(), InferResponse(()), 0, responded_ns)
    assert counts(first) == ([2, 3], 4, 1 + 1 + 3 + 900)


def test_only_the_first_response_of_a_request_counts() -> None:
    first, streaming = FirstResponseHistogram([1, 10]), request()
    for final in (False, False, True):
        first.responded(streaming, InferResponse((), final=final), 0, 8 * MS)
    assert counts(first) == ([0, 1], 1, 3)


def test_an_error_counts_and_an_empty_final_response_does_not() -> None:
    first, failed = FirstResponseHistogram([1, 10]), request()
    first.responded(failed, InferResponse.failed(failed, Internal("broken")), 0, 6 * MS)
    first.responded(request(), InferResponse((), empty=True), 0, 6 * MS)
    assert counts(first) == ([1, 1], 1, 1)


def test_an_ended_request_is_forgotten() -> None:
    first, streaming = FirstResponseHistogram([1]), request()
    first.responded(streaming, InferResponse((), final=False), 0, 6 * MS)
    first.responded(streaming, InferResponse((), empty=True), 0, 7 * MS)
    assert not first._started


def test_buckets_that_do_not_ascend_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="strictly sorted"):
        FirstResponseHistogram([5, 1])


def test_a_model_configures_its_buckets_and_is_warned_of_families_without_any(
    caplog: pytest.LogCaptureFixture,
) -> None:
    control = 'metric_control {{ metric_identifier {{ family: "{}" }} histogram_options {{ buckets: [1, 2.5] }} }}'
    expected, other = (
        control.format(family)
        for family in ("nv_inference_first_response_histogram_ms", "nv_other")
    )
    config = text_format.Parse(f'name: "m" model_metrics {{ {expected} {other} }}', ModelConfig())
    assert list(configured_buckets(config)) == [1, 2.5]
    assert "model 'm': metric family 'nv_other'" in caplog.text
    assert configured_buckets(ModelConfig()) == DEFAULT_BUCKETS


GROUPS = "instance_group [{ kind: KIND_GPU gpus: [1, 0] }, { kind: KIND_GPU gpus: [1] }, { kind: KIND_CPU count: 2 }]"


def executed(counters: GpuCounters, kind: str, device: int, rows: int = 1) -> InferRequest:
    request = InferRequest("m", {}, None, batch_size=rows)
    batch = Batch([request], instance=Slot(InstanceContext("i", kind, device, 0)), start_ns=10)
    batch.input_end_ns, batch.infer_end_ns = 20, 40
    request.batch = batch
    counters.executed(batch)
    return request


def shares(counters: GpuCounters) -> dict[int | None, tuple[int, int, int, int]]:
    found = {}
    for share in counters.snapshot("m", 1):
        statistics = share.statistics
        success = statistics.inference_stats.success.count
        found[share.gpu] = (
            statistics.execution_count,
            success,
            statistics.inference_count,
            sum(share.failures.values()),
        )
    return found


def test_only_the_gpus_of_a_model_count() -> None:
    assert configured_gpus(text_format.Parse(GROUPS, ModelConfig())) == [0, 1]
    assert configured_gpus(ModelConfig()) == []


def test_each_gpu_counts_its_executions() -> None:
    counters = GpuCounters([0, 1])
    counters.responded(executed(counters, "GPU", 0, rows=4), InferResponse(()), 0, 50)
    failed = executed(counters, "GPU", 1)
    counters.responded(failed, InferResponse.failed(failed, Internal("broken")), 0, 50)
    counters.responded(executed(counters, "CPU", 0), InferResponse(()), 0, 50)
    assert shares(counters) == {None: (1, 1, 1, 0), 0: (1, 1, 4, 0), 1: (1, 0, 0, 1)}


def test_requests_without_an_instance_have_no_gpu() -> None:
    counters, request = GpuCounters([0]), InferRequest("m", {}, None)
    counters.responded(request, InferResponse.failed(request, QueueTimeout("too late")), 0, 50)
    assert shares(counters) == {None: (0, 0, 0, 1), 0: (0, 0, 0, 0)}


def test_a_request_counts_when_it_ends() -> None:
    counters = GpuCounters([0])
    request = executed(counters, "GPU", 0)
    counters.responded(request, InferResponse((), final=False), 0, 50)
    assert shares(counters)[0] == (1, 0, 0, 0)
    counters.responded(request, InferResponse((), empty=True), 0, 60)
    assert shares(counters)[0] == (1, 1, 1, 0)


def test_hits_and_misses_of_the_cache_belong_to_no_gpu() -> None:
    counters = GpuCounters([0])
    hit, miss = InferRequest("m", {}, None), executed(counters, "GPU", 0)
    hit.cache, miss.cache = (
        CacheLookup(0, hit=True, lookup_ns=5),
        CacheLookup(0, lookup_ns=3, insertion_ns=4),
    )
    for request in (hit, miss):
        counters.responded(request, InferResponse(()), 0, 50)
    none, gpu = (share.statistics.inference_stats for share in counters.snapshot("m", 1))
    assert (none.success.count, none.cache_hit, none.cache_miss) == (
        1,
        Duration(1, 5),
        Duration(1, 7),
    )
    assert (gpu.success.count, gpu.cache_hit, gpu.cache_miss) == (1, Duration(), Duration())


NOTHING = Duration()
DATA = [Tensor("OUT", "INT32", (1,), b"\0\0\0\0")]


def running(start_ns: int = 100) -> InferRequest:
    request = InferRequest("m", {}, None)
    request.batch = Batch([request], start_ns=start_ns)
    return request


def answer(*, final: bool = False) -> InferResponse:
    return InferResponse(DATA, final=final)


def times(**expected: tuple[int, int]) -> ResponseStatistics:
    names = ResponseStatistics.__struct_fields__
    return ResponseStatistics(*(Duration(*expected.get(name, (0, 0))) for name in names))


def test_each_response_is_timed_from_the_previous_one() -> None:
    counters, request = DecoupledResponseCounters(), running(start_ns=100)
    counters.responded(request, answer(), 130, 135)
    counters.responded(request, answer(final=True), 165, 175)
    assert counters.snapshot() == {
        "0": times(compute_infer=(1, 30), compute_output=(1, 5), success=(1, 35)),
        "1": times(compute_infer=(1, 30), compute_output=(1, 10), success=(1, 40)),
    }


def test_concurrent_requests_have_separate_indexes() -> None:
    counters, one, other = DecoupledResponseCounters(), running(), running()
    for request in (one, other, other):
        counters.responded(request, answer(), 110, 110)
    counters.responded(one, answer(final=True), 120, 120)
    assert {place: counted.success.count for place, counted in counters.snapshot().items()} == {
        "0": 2,
        "1": 2,
    }


def test_an_empty_final_response_is_counted_as_empty() -> None:
    counters, request = DecoupledResponseCounters(), running()
    counters.responded(request, InferResponse((), empty=True), 150, 160)
    assert counters.snapshot() == {"0": times(compute_infer=(1, 60), empty_response=(1, 60))}


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (Internal("broken"), times(compute_infer=(1, 60), fail=(1, 60))),
        (Cancelled("left"), times(cancel=(1, 60))),
    ],
)
def test_an_error_counts_as_failure_or_cancellation(
    error: Internal | Cancelled, expected: ResponseStatistics
) -> None:
    counters, request = DecoupledResponseCounters(), running()
    counters.responded(request, InferResponse.failed(request, error), 150, 160)
    assert counters.snapshot() == {"0": expected}


def test_requests_without_an_execution_are_left_out() -> None:
    counters, request = DecoupledResponseCounters(), InferRequest("m", {}, None)
    counters.responded(
        request, InferResponse.failed(request, Cancelled("left the queue")), 150, 160
    )
    assert counters.snapshot() == {}


def test_a_response_sent_before_the_previous_one_was_counted_has_no_compute_time() -> None:
    counters, request = DecoupledResponseCounters(), running(100)
    counters.responded(request, answer(), 130, 150)
    counters.responded(request, answer(final=True), 140, 160)
    assert counters.snapshot()["1"] == times(
        compute_infer=(1, 0), compute_output=(1, 10), success=(1, 10)
    )


def test_a_snapshot_does_not_change() -> None:
    counters, request = DecoupledResponseCounters(), running()
    counters.responded(request, answer(), 110, 120)
    before = counters.snapshot()
    counters.responded(running(), answer(), 110, 120)
    assert before["0"].success.count == 1


def test_indexes_are_sorted_numerically() -> None:
    counters, request = DecoupledResponseCounters(), running()
    for _ in range(12):
        counters.responded(request, answer(), 110, 120)
    assert list(counters.snapshot()) == [str(place) for place in range(12)]


QUANTILES = {0.5: 0.01, 0.9: 0.01}


def test_count_and_sum_are_of_all_time_and_exact() -> None:
    summary = Summary(QUANTILES, 0)
    for value in range(3 * BUFFER):
        summary.observe(value, 0)
    assert summary.snapshot(10 * AGE_NS) == SummarySnapshot(
        3 * BUFFER, sum(range(3 * BUFFER)), [(0.5, None), (0.9, None)]
    )


def test_quantiles_are_available_immediately() -> None:
    summary = Summary(QUANTILES, 0)
    for value in range(1, 101):
        summary.observe(value, 0)
    assert dict(summary.snapshot(0).quantiles) == {
        0.5: pytest.approx(50, abs=2),
        0.9: pytest.approx(90, abs=2),
    }


def test_an_empty_summary_has_no_quantiles() -> None:
    assert Summary(QUANTILES, 0).snapshot(0) == SummarySnapshot(0, 0, [(0.5, None), (0.9, None)])


def test_old_values_are_forgotten_within_a_minute() -> None:
    summary = Summary(QUANTILES, 0)
    summary.observe(1000, 0)
    summary.observe(1, ROTATION_NS)
    assert dict(summary.snapshot(AGE_NS - 1).quantiles)[0.9] == 1000
    assert dict(summary.snapshot(AGE_NS).quantiles)[0.9] == 1
    assert dict(summary.snapshot(AGE_NS + ROTATION_NS).quantiles)[0.9] is None


def test_a_value_after_a_long_pause_is_alone() -> None:
    summary = Summary(QUANTILES, 0)
    summary.observe(1000, 0)
    summary.observe(2, 7 * AGE_NS + 5)
    assert dict(summary.snapshot(7 * AGE_NS + 6).quantiles) == {0.5: 2, 0.9: 2}
    assert dict(summary.snapshot(8 * AGE_NS + ROTATION_NS).quantiles) == {0.5: None, 0.9: None}
