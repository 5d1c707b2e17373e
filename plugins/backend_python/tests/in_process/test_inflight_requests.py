from __future__ import annotations

from tritonpy import InferRequest
from tritonpy_backend_python.in_process.inflight_requests import InflightRequests
from tritonpy_testing import RecordingSink


def request() -> InferRequest:
    return InferRequest("m", {}, RecordingSink().sink)


def test_request_numbers_increase() -> None:
    opened = InflightRequests()
    one, other, third = request(), request(), request()
    assert (opened.add([one, other]), opened.add([]), opened.add([third])) == (0, 2, 2)
    assert [opened.get(number) for number in range(4)] == [one, other, third, None]


def test_the_state_of_an_ended_request_is_removed() -> None:
    opened = InflightRequests()
    one = request()
    number = opened.add([one])
    opened.begin(number)
    assert opened.has_begun(number)
    assert opened.end(number) is one
    assert opened.end(number) is None
    assert not opened.has_begun(number)
