from __future__ import annotations

from tritonpy import Cancelled, InferRequest, InferResponse
from tritonpy.repository import UNOWNED
from tritonpy_residency.waiting_requests import WaitingRequests


def waiting_for(recorder, *overdue):
    line = WaitingRequests(lambda request: line.discard(request))  # noqa: PLW0108  it is not there yet
    requests = [InferRequest("m", {}, recorder.sink) for _ in overdue]
    for request, until in zip(requests, overdue, strict=True):
        line.add(request, until)
    return line, requests


def test_requests_are_taken_in_the_order_of_arrival(recorder):
    line, requests = waiting_for(recorder, 30, 10, 20)
    assert (len(line), list(line), line.next_overdue()) == (3, requests, 10)
    assert line.take(overdue_at=20) == requests[1:]
    assert line.take() == requests[:1]
    assert (line.next_overdue(), requests[0].owner) == (None, UNOWNED)


def test_a_cancelled_request_gets_one_response(recorder):
    line, (request, other) = waiting_for(recorder, 1, 1)
    request.cancel()
    request.cancel()
    ((response,),) = recorder.wait(request)
    assert isinstance(response.error, Cancelled)
    assert list(line) == [other]
    assert not line.discard(request)


def test_responses_of_a_waiting_request_are_passed_on(recorder):
    _, (request,) = waiting_for(recorder, 1)
    request.reschedule()
    request.respond(InferResponse(()))
    ((response,),) = recorder.wait(request)
    assert response.error is None
