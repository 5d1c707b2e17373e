from __future__ import annotations

import pytest

from tritonpy import InferRequest
from tritonpy.repository import LazyListing
from tritonpy_residency.lazy_model import LONGEST_PAUSE_S, LazyModel
from tritonpy_residency.waiting_requests import WaitingRequests


@pytest.fixture
def lazy_model():
    return LazyModel(
        "m", "m", LazyListing(None, (1,)), "f", False, None, WaitingRequests(lambda _: True)
    )


def call(recorder, *callers):
    request = None
    for name in (*callers, "m"):
        request = InferRequest(name, {}, recorder.sink, parent=request)
    return request


def test_pauses_after_failures_double_up_to_a_minute_and_are_reset(lazy_model):
    assert [lazy_model.record_failure("broken", 1.0) for _ in range(8)] == [
        1,
        2,
        4,
        8,
        16,
        32,
        LONGEST_PAUSE_S,
        LONGEST_PAUSE_S,
    ]
    assert (lazy_model.reason, lazy_model.retry_ns > 0) == ("broken", True)
    lazy_model.mark_loaded(0.0)
    assert (lazy_model.failures, lazy_model.reason, lazy_model.retry_ns) == (0, "", 0)


def test_a_load_is_needed_while_requests_wait_for_it(lazy_model, recorder):
    deadline = lazy_model.deadline(20)
    assert deadline.is_over
    request = call(recorder)
    lazy_model.waiting.add(request, 1)
    assert not deadline.is_over
    lazy_model.removed = True
    assert deadline.is_over
    lazy_model.removed, lazy_model.load_anyway = False, True
    lazy_model.waiting.discard(request)
    assert not deadline.is_over


def test_models_that_made_every_waiting_request_count_as_waiting(lazy_model, recorder):
    deadline = lazy_model.deadline(20)
    assert deadline.waiting_models() == frozenset()
    lazy_model.waiting.add(call(recorder, "a", "b"), 1)
    assert deadline.waiting_models() == {"a", "b"}
    lazy_model.waiting.add(call(recorder, "b"), 1)
    assert deadline.waiting_models() == {"b"}
    lazy_model.waiting.add(call(recorder), 1)
    assert deadline.waiting_models() == frozenset()


def test_the_reason_why_a_load_waits_is_stored(lazy_model):
    lazy_model.deadline(20).report("no room")
    assert lazy_model.blocked_reason == "no room"
