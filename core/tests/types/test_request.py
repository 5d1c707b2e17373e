from __future__ import annotations

from tritonpy.errors import Internal
from tritonpy.testing.witness import Witness
from tritonpy.types import InferRequest, InferResponse


def test_a_request_that_nobody_owns_still_gets_one_final_answer() -> None:
    witness = Witness()
    request = InferRequest("m", {}, witness.sink)
    for final in (False, True, True, False):
        request.respond(InferResponse((), final=final))
    assert [response.final for response in witness.answers(request)] == [False, True]


def test_a_request_that_nobody_owns_can_be_cancelled_and_handed_back() -> None:
    request = InferRequest("m", {}, Witness().sink)
    request.cancel()
    request.reschedule()
    assert request.cancelled
    assert not request.answered


def test_requests_are_compared_by_identity() -> None:
    sink = Witness().sink
    one, other = InferRequest("m", {}, sink), InferRequest("m", {}, sink)
    assert one != other
    assert len({one, other, one}) == 2


def test_a_failed_answer_is_final_and_carries_the_request() -> None:
    request = InferRequest("m", {}, Witness().sink, model_version=3, id="seven")
    response = InferResponse.failed(request, Internal("broken"))
    assert (response.final, response.outputs, response.id, response.model_version) == (True, (), "seven", 3)
    assert str(response.error) == "broken"
