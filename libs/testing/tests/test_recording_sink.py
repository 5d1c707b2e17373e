from __future__ import annotations

import pytest

from tritonpy import InferRequest, InferResponse
from tritonpy_testing import RecordingSink


@pytest.fixture
def recorder():
    return RecordingSink()


def owned(recorder):
    return InferRequest("model", {}, recorder.sink, owner=recorder)


def test_one_final_response_passes_the_check(recorder):
    request = owned(recorder)
    request.respond(InferResponse((), final=False))
    request.respond(InferResponse(()))
    assert [response.final for response in recorder.wait(request)[0]] == [False, True]
    recorder.check(request)


@pytest.mark.parametrize("finals", [[], [False], [True, True], [True, False]])
def test_other_sequences_fail_the_check(recorder, finals):
    request = owned(recorder)
    for final in finals:
        request.respond(InferResponse((), final=final))
    with pytest.raises(AssertionError):
        recorder.check(request)


def test_a_missing_response_is_named(recorder):
    answered, lost = owned(recorder), owned(recorder)
    answered.respond(InferResponse(()))
    with pytest.raises(
        AssertionError, match=r"no final response within 0 s for request number \[1\] of 2"
    ):
        recorder.wait(answered, lost, timeout_s=0)


def test_a_second_final_response_is_recorded(recorder):
    request = InferRequest("model", {}, recorder.sink)
    request.sink.put(request, InferResponse(()))
    request.sink.put(request, InferResponse(()))
    with pytest.raises(AssertionError, match="2 final responses"):
        recorder.check(request)


def test_cancellations_are_forwarded():
    cancelled = []
    request = owned(RecordingSink(cancelled.append))
    request.cancel()
    assert cancelled == [request]


def test_rescheduled_requests_are_returned_once(recorder):
    request = owned(recorder)
    request.reschedule()
    recorder.wait(request, timeout_s=0)
    assert recorder.take_rescheduled() == [request]
    assert recorder.take_rescheduled() == []
