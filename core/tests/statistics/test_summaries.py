from __future__ import annotations

from tritonpy.statistics.per_response import PARTS, LatencySummaries
from tritonpy_types import Batch, ComputeTimes, InferRequest, InferResponse
from tritonpy_types.errors import Internal
from tritonpy_types.request import CacheLookup


def request(*, ran: bool = True) -> InferRequest:
    made = InferRequest("m", {}, None, received_ns=1_000_000, queued_ns=2_000_000)
    if ran:
        made.batch = Batch(
            [made], start_ns=5_000_000, input_end_ns=6_000_000, infer_end_ns=8_000_999
        )
    return made


def medians(summaries: LatencySummaries) -> dict[str, float | None]:
    return {part: summary.quantiles[0][1] for part, summary in summaries.snapshot(0).items()}


def test_every_part_is_in_whole_microseconds() -> None:
    summaries = LatencySummaries({0.5: 0.01}, 0)
    summaries.responded(request(), InferResponse(()), 0, 9_000_000)
    assert medians(summaries) == {
        "request": 8000, "queue": 3000, "compute_input": 1000, "compute_infer": 2000, "compute_output": 999,
    }  # fmt: skip


def test_a_scheduler_without_instances_has_only_queue_time() -> None:
    summaries = LatencySummaries({0.5: 0.01}, 0)
    summaries.responded(request(ran=False), InferResponse(()), 0, 9_000_000)
    assert medians(summaries) == {
        "request": 8000, "queue": 7000, "compute_input": 0, "compute_infer": 0, "compute_output": 0,
    }  # fmt: skip


def test_a_request_computed_by_other_models_has_their_compute_times() -> None:
    summaries, handed_on = LatencySummaries({0.5: 0.01}, 0), request(ran=False)
    handed_on.compute_times = ComputeTimes(2_500_000, 1_000_000, 2_000_000, 3_000_000)
    summaries.responded(handed_on, InferResponse(()), 0, 9_000_000)
    assert medians(summaries) == {
        "request": 8000, "queue": 500, "compute_input": 1000, "compute_infer": 2000, "compute_output": 3000,
    }  # fmt: skip


def test_only_the_end_of_a_success_is_observed() -> None:
    summaries, failed = LatencySummaries({0.5: 0.01}, 0), request()
    summaries.responded(request(), InferResponse((), final=False), 0, 9_000_000)
    summaries.responded(failed, InferResponse.failed(failed, Internal("broken")), 0, 9_000_000)
    assert {
        part: summary.count for part, summary in summaries.snapshot(0).items()
    } == dict.fromkeys(PARTS, 0)


def cached(summaries: LatencySummaries, look: CacheLookup) -> dict[str, int]:
    summaries.use_cache(0)
    made = request(ran=not look.hit)
    made.cache = look
    summaries.responded(made, InferResponse(()), 0, 9_000_000)
    return {part: summary.sum for part, summary in summaries.snapshot(0).items() if summary.count}


def test_a_hit_has_queue_time_until_its_look_up_and_no_compute_time() -> None:
    found = cached(
        LatencySummaries({0.5: 0.01}, 0),
        CacheLookup(0, hit=True, start_ns=2_500_000, lookup_ns=700_000),
    )
    assert found == {"queue": 500, "cache_hit": 700}


def test_a_miss_has_compute_times_look_up_and_insertion() -> None:
    found = cached(
        LatencySummaries({0.5: 0.01}, 0), CacheLookup(0, lookup_ns=700_000, insertion_ns=300_000)
    )
    assert found == {
        "queue": 3000, "compute_input": 1000, "compute_infer": 2000, "compute_output": 999, "cache_miss": 1000,
    }  # fmt: skip


def test_with_a_cache_there_is_no_summary_of_whole_requests() -> None:
    summaries = LatencySummaries({0.5: 0.01}, 0)
    summaries.use_cache(0)
    assert set(summaries.snapshot(0)) == {*PARTS, "cache_hit", "cache_miss"} - {"request"}
