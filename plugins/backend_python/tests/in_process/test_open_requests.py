from __future__ import annotations

from tritonpy import InferRequest
from tritonpy.testing import Witness
from tritonpy_backend_python.in_process.open_requests import OpenRequests


def request() -> InferRequest:
    return InferRequest("m", {}, Witness().sink)


def test_numbers_go_on() -> None:
    opened = OpenRequests()
    one, other, third = request(), request(), request()
    assert (opened.add([one, other]), opened.add([]), opened.add([third])) == (0, 2, 2)
    assert [opened.get(number) for number in range(4)] == [one, other, third, None]


def test_an_ended_request_is_forgotten_with_all_that_was_noted() -> None:
    opened = OpenRequests()
    one = request()
    number = opened.add([one])
    opened.begin(number)
    assert opened.has_begun(number)
    assert opened.end(number) is one
    assert opened.end(number) is None
    assert not opened.has_begun(number)
