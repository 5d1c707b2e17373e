from __future__ import annotations

import pytest

from tritonpy.repository.lazy.cold_model import LONGEST_PAUSE_S, ColdModel
from tritonpy.repository.lazy.waiting import WaitingRequests
from tritonpy.repository.table import Listed
from tritonpy.types import InferRequest


@pytest.fixture
def cold():
    return ColdModel("m", "m", Listed(None, (1,)), "f", False, None, WaitingRequests(lambda _: True))


def call(witness, *callers):
    request = None
    for name in (*callers, "m"):
        request = InferRequest(name, {}, witness.sink, parent=request)
    return request


def test_pauses_between_failures_double_up_to_a_minute_and_begin_anew(cold):
    assert [cold.failed("broken", 1.0) for _ in range(8)] == [1, 2, 4, 8, 16, 32, LONGEST_PAUSE_S, LONGEST_PAUSE_S]
    assert (cold.reason, cold.retry_ns > 0) == ("broken", True)
    cold.arrived(0.0)
    assert (cold.failures, cold.reason, cold.retry_ns) == (0, "", 0)


def test_a_load_is_wanted_while_somebody_waits_for_it(cold, witness):
    patience = cold.patience(20)
    assert patience.over
    request = call(witness)
    cold.waiting.add(request, 1)
    assert not patience.over
    cold.dropped = True
    assert patience.over
    cold.dropped, cold.unasked = False, True
    cold.waiting.discard(request)
    assert not patience.over


def test_models_by_which_every_request_was_made_wait_for_the_load(cold, witness):
    patience = cold.patience(20)
    assert patience.held() == frozenset()
    cold.waiting.add(call(witness, "a", "b"), 1)
    assert patience.held() == {"a", "b"}
    cold.waiting.add(call(witness, "b"), 1)
    assert patience.held() == {"b"}
    cold.waiting.add(call(witness), 1)
    assert patience.held() == frozenset()


def test_what_stands_against_a_load_is_kept(cold):
    cold.patience(20).tell("no room")
    assert cold.against == "no room"
