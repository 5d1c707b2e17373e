from __future__ import annotations

from tritonpy.errors import Cancelled
from tritonpy.repository.lazy.waiting import WaitingRequests
from tritonpy.types import InferRequest, InferResponse
from tritonpy.types.request import UNOWNED


def waiting_for(witness, *overdue):
    line = WaitingRequests(lambda request: line.discard(request))  # noqa: PLW0108  it is not there yet
    requests = [InferRequest("m", {}, witness.sink) for _ in overdue]
    for request, until in zip(requests, overdue, strict=True):
        line.add(request, until)
    return line, requests


def test_requests_are_taken_in_the_order_in_which_they_came(witness):
    line, requests = waiting_for(witness, 30, 10, 20)
    assert (len(line), list(line), line.next_overdue()) == (3, requests, 10)
    assert line.take(overdue_at=20) == requests[1:]
    assert line.take() == requests[:1]
    assert (line.next_overdue(), requests[0].owner) == (None, UNOWNED)


def test_a_cancelled_request_is_answered_once_and_gone(witness):
    line, (request, other) = waiting_for(witness, 1, 1)
    request.cancel()
    request.cancel()
    ((answer,),) = witness.wait(request)
    assert isinstance(answer.error, Cancelled)
    assert list(line) == [other]
    assert not line.discard(request)


def test_what_answers_a_request_that_waits_is_passed_on(witness):
    _, (request,) = waiting_for(witness, 1)
    request.reschedule()
    request.respond(InferResponse(()))
    ((answer,),) = witness.wait(request)
    assert answer.error is None
