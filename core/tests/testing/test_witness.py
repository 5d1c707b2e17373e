from __future__ import annotations

import pytest

from tritonpy import InferRequest, InferResponse
from tritonpy.testing import Witness


@pytest.fixture
def witness():
    return Witness()


def owned(witness):
    return InferRequest("model", {}, witness.sink, owner=witness)


def test_one_final_answer_is_right(witness):
    request = owned(witness)
    request.respond(InferResponse((), final=False))
    request.respond(InferResponse(()))
    assert [response.final for response in witness.wait(request)[0]] == [False, True]
    witness.check(request)


@pytest.mark.parametrize("finals", [[], [False], [True, True], [True, False]])
def test_every_other_sequence_is_wrong(witness, finals):
    request = owned(witness)
    for final in finals:
        request.respond(InferResponse((), final=final))
    with pytest.raises(AssertionError):
        witness.check(request)


def test_a_missing_answer_is_named(witness):
    answered, lost = owned(witness), owned(witness)
    answered.respond(InferResponse(()))
    with pytest.raises(AssertionError, match=r"no final answer within 0 s for request number \[1\] of 2"):
        witness.wait(answered, lost, timeout_s=0)


def test_a_sink_that_is_called_twice_is_seen(witness):
    request = InferRequest("model", {}, witness.sink)
    request.sink.put(request, InferResponse(()))
    request.sink.put(request, InferResponse(()))
    with pytest.raises(AssertionError, match="2 final answers"):
        witness.check(request)


def test_cancellations_are_passed_on():
    cancelled = []
    request = owned(Witness(cancelled.append))
    request.cancel()
    assert cancelled == [request]


def test_what_is_handed_back_is_taken_once(witness):
    request = owned(witness)
    request.reschedule()
    witness.wait(request, timeout_s=0)
    assert witness.take_rescheduled() == [request]
    assert witness.take_rescheduled() == []
