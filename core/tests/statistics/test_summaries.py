from __future__ import annotations

from tritonpy.errors import Internal
from tritonpy.statistics.summaries import PARTS, Summaries
from tritonpy.types import Batch, InferRequest, InferResponse


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


def test_only_the_end_of_a_success_is_observed() -> None:
    summaries, failed = Summaries({0.5: 0.01}, 0), request()
    summaries.answered(request(), InferResponse((), final=False), 0, 9_000_000)
    summaries.answered(failed, InferResponse.failed(failed, Internal("broken")), 0, 9_000_000)
    assert {part: summary.count for part, summary in summaries.snapshot(0).items()} == dict.fromkeys(PARTS, 0)
