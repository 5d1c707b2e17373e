from __future__ import annotations

import pytest

from tritonpy.api.engine import Duration, ResponseStatistics
from tritonpy.errors import Cancelled, Internal
from tritonpy.statistics.decoupled_responses import DecoupledResponseCounters
from tritonpy.types import Batch, InferRequest, InferResponse, Tensor

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
    assert {place: counted.success.count for place, counted in counters.snapshot().items()} == {"0": 2, "1": 2}


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
def test_an_error_counts_as_failure_or_cancellation(error: Internal | Cancelled, expected: ResponseStatistics) -> None:
    counters, request = DecoupledResponseCounters(), running()
    counters.responded(request, InferResponse.failed(request, error), 150, 160)
    assert counters.snapshot() == {"0": expected}


def test_requests_without_an_execution_are_left_out() -> None:
    counters, request = DecoupledResponseCounters(), InferRequest("m", {}, None)
    counters.responded(request, InferResponse.failed(request, Cancelled("left the queue")), 150, 160)
    assert counters.snapshot() == {}


def test_a_response_sent_before_the_previous_one_was_counted_has_no_compute_time() -> None:
    counters, request = DecoupledResponseCounters(), running(100)
    counters.responded(request, answer(), 130, 150)
    counters.responded(request, answer(final=True), 140, 160)
    assert counters.snapshot()["1"] == times(compute_infer=(1, 0), compute_output=(1, 10), success=(1, 10))


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
