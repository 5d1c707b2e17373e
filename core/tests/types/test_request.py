from __future__ import annotations

from tritonpy.errors import Internal
from tritonpy.types import InferRequest, InferResponse
from tritonpy_testing.recording_sink import RecordingSink


def test_a_request_without_an_owner_gets_one_final_response() -> None:
    recorder = RecordingSink()
    request = InferRequest("m", {}, recorder.sink)
    for final in (False, True, True, False):
        request.respond(InferResponse((), final=final))
    assert [response.final for response in recorder.responses(request)] == [False, True]


def test_a_request_without_an_owner_can_be_cancelled_and_rescheduled() -> None:
    request = InferRequest("m", {}, RecordingSink().sink)
    request.cancel()
    request.reschedule()
    assert request.cancelled
    assert not request.finished


def test_requests_are_compared_by_identity() -> None:
    sink = RecordingSink().sink
    one, other = InferRequest("m", {}, sink), InferRequest("m", {}, sink)
    assert one != other
    assert len({one, other, one}) == 2


def test_a_failed_response_is_final_and_identifies_the_request() -> None:
    request = InferRequest("m", {}, RecordingSink().sink, model_version=3, id="seven")
    response = InferResponse.failed(request, Internal("broken"))
    assert (response.final, response.outputs, response.id, response.model_version) == (True, (), "seven", 3)
    assert str(response.error) == "broken"
