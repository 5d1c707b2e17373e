from __future__ import annotations

import pytest

from tritonpy.api.engine import Duration, ResponseStatistics
from tritonpy.errors import Cancelled, Internal
from tritonpy.statistics.responses import ResponseCounters
from tritonpy.types import Batch, InferRequest, InferResponse, Tensor

NOTHING = Duration()
DATA = [Tensor("OUT", "INT32", (1,), b"\0\0\0\0")]


def running(start_ns: int = 100) -> InferRequest:
    request = InferRequest("m", {}, None)
    request.batch = Batch([request], start_ns=start_ns)
    return request


def answer(*, final: bool = False) -> InferResponse:
    return InferResponse(DATA, final=final)


def times(**said: tuple[int, int]) -> ResponseStatistics:
    names = ResponseStatistics.__struct_fields__
    return ResponseStatistics(*(Duration(*said.get(name, (0, 0))) for name in names))


def test_each_answer_is_timed_from_the_one_before_it() -> None:
    counters, request = ResponseCounters(), running(start_ns=100)
    counters.answered(request, answer(), 130, 135)
    counters.answered(request, answer(final=True), 165, 175)
    assert counters.snapshot() == {
        "0": times(compute_infer=(1, 30), compute_output=(1, 5), success=(1, 35)),
        "1": times(compute_infer=(1, 30), compute_output=(1, 10), success=(1, 40)),
    }


def test_requests_side_by_side_have_places_of_their_own() -> None:
    counters, one, other = ResponseCounters(), running(), running()
    for request in (one, other, other):
        counters.answered(request, answer(), 110, 110)
    counters.answered(one, answer(final=True), 120, 120)
    assert {place: counted.success.count for place, counted in counters.snapshot().items()} == {"0": 2, "1": 2}


def test_the_bare_end_of_a_stream_is_an_empty_answer() -> None:
    counters, request = ResponseCounters(), running()
    counters.answered(request, InferResponse((), empty=True), 150, 160)
    assert counters.snapshot() == {"0": times(compute_infer=(1, 60), empty_response=(1, 60))}


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (Internal("broken"), times(compute_infer=(1, 60), fail=(1, 60))),
        (Cancelled("left"), times(cancel=(1, 60))),
    ],
)
def test_an_error_fails_or_cancels_its_place(error: Internal | Cancelled, expected: ResponseStatistics) -> None:
    counters, request = ResponseCounters(), running()
    counters.answered(request, InferResponse.failed(request, error), 150, 160)
    assert counters.snapshot() == {"0": expected}


def test_what_never_ran_is_left_out() -> None:
    counters, request = ResponseCounters(), InferRequest("m", {}, None)
    counters.answered(request, InferResponse.failed(request, Cancelled("left the queue")), 150, 160)
    assert counters.snapshot() == {}


def test_an_answer_handed_over_before_its_forerunner_was_counted_took_no_time_to_compute() -> None:
    counters, request = ResponseCounters(), running(100)
    counters.answered(request, answer(), 130, 150)
    counters.answered(request, answer(final=True), 140, 160)
    assert counters.snapshot()["1"] == times(compute_infer=(1, 0), compute_output=(1, 10), success=(1, 10))


def test_a_snapshot_stands_still() -> None:
    counters, request = ResponseCounters(), running()
    counters.answered(request, answer(), 110, 120)
    before = counters.snapshot()
    counters.answered(running(), answer(), 110, 120)
    assert before["0"].success.count == 1


def test_places_are_in_the_order_of_their_numbers() -> None:
    counters, request = ResponseCounters(), running()
    for _ in range(12):
        counters.answered(request, answer(), 110, 120)
    assert list(counters.snapshot()) == [str(place) for place in range(12)]
