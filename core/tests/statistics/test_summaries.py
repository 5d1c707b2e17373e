from __future__ import annotations

from tritonpy.errors import Internal
from tritonpy.statistics.summaries import PARTS, Summaries
from tritonpy.types import Batch, InferRequest, InferResponse, Work
from tritonpy.types.cache_look import CacheLook


def request(*, ran: bool = True) -> InferRequest:
    made = InferRequest("m", {}, None, received_ns=1_000_000, queued_ns=2_000_000)
    if ran:
        made.batch = Batch([made], start_ns=5_000_000, input_end_ns=6_000_000, infer_end_ns=8_000_999)
    return made


def medians(summaries: Summaries) -> dict[str, float | None]:
    return {part: summary.quantiles[0][1] for part, summary in summaries.snapshot(0).items()}


def test_every_part_is_in_whole_microseconds() -> None:
    summaries = Summaries({0.5: 0.01}, 0)
    summaries.answered(request(), InferResponse(()), 0, 9_000_000)
    assert medians(summaries) == {
        "request": 8000, "queue": 3000, "compute_input": 1000, "compute_infer": 2000, "compute_output": 999,
    }  # fmt: skip


def test_a_scheduler_without_instances_waits_and_computes_nothing_itself() -> None:
    summaries = Summaries({0.5: 0.01}, 0)
    summaries.answered(request(ran=False), InferResponse(()), 0, 9_000_000)
    assert medians(summaries) == {
        "request": 8000, "queue": 7000, "compute_input": 0, "compute_infer": 0, "compute_output": 0,
    }  # fmt: skip


def test_a_request_that_was_handed_on_cost_what_the_others_did_for_it() -> None:
    summaries, handed_on = Summaries({0.5: 0.01}, 0), request(ran=False)
    handed_on.work = Work(2_500_000, 1_000_000, 2_000_000, 3_000_000)
    summaries.answered(handed_on, InferResponse(()), 0, 9_000_000)
    assert medians(summaries) == {
        "request": 8000, "queue": 500, "compute_input": 1000, "compute_infer": 2000, "compute_output": 3000,
    }  # fmt: skip


def test_only_the_end_of_a_success_is_observed() -> None:
    summaries, failed = Summaries({0.5: 0.01}, 0), request()
    summaries.answered(request(), InferResponse((), final=False), 0, 9_000_000)
    summaries.answered(failed, InferResponse.failed(failed, Internal("broken")), 0, 9_000_000)
    assert {part: summary.count for part, summary in summaries.snapshot(0).items()} == dict.fromkeys(PARTS, 0)


def cached(summaries: Summaries, look: CacheLook) -> dict[str, int]:
    summaries.use_cache(0)
    made = request(ran=not look.hit)
    made.cache = look
    summaries.answered(made, InferResponse(()), 0, 9_000_000)
    return {part: summary.sum for part, summary in summaries.snapshot(0).items() if summary.count}


def test_a_hit_waits_until_its_look_up_and_computes_nothing() -> None:
    found = cached(Summaries({0.5: 0.01}, 0), CacheLook(0, hit=True, start_ns=2_500_000, lookup_ns=700_000))
    assert found == {"queue": 500, "cache_hit": 700}


def test_a_miss_computes_and_costs_look_up_and_insertion() -> None:
    found = cached(Summaries({0.5: 0.01}, 0), CacheLook(0, lookup_ns=700_000, insertion_ns=300_000))
    assert found == {
        "queue": 3000, "compute_input": 1000, "compute_infer": 2000, "compute_output": 999, "cache_miss": 1000,
    }  # fmt: skip


def test_with_a_cache_there_is_no_summary_of_whole_requests() -> None:
    summaries = Summaries({0.5: 0.01}, 0)
    summaries.use_cache(0)
    assert set(summaries.snapshot(0)) == {*PARTS, "cache_hit", "cache_miss"} - {"request"}
