from __future__ import annotations

import pytest

from tritonpy import Batch, InferRequest, InferResponse, Internal
from tritonpy.scheduling import Scheduler, SchedulerContext
from tritonpy_testing import SchedulerHarness, ToyEngine, model_config


class Timed(Scheduler):
    """Runs a request one second after its arrival, and responds itself after two seconds."""

    runs = True

    def __init__(self):
        super().__init__(SchedulerContext("m", 1, model_config(""), ToyEngine([]), None, None))
        self.waiting = []

    def enqueue(self, request):
        self.waiting.append(request)

    def ready(self, instance, now_ns):
        if not self.waiting or not self.runs:
            return False
        due = self.waiting[0].queued_ns + 10**9
        return now_ns >= due or due

    def take(self, instance, now_ns, limit=0):
        return Batch([self.waiting.pop(0)])

    def expire(self, now_ns):
        if not self.waiting:
            return None
        due = self.waiting[0].queued_ns + 2 * 10**9
        if now_ns < due:
            return due
        request = self.waiting.pop(0)
        request.respond(InferResponse.failed(request, Internal("too late")))
        return None


@pytest.fixture
def harness():
    return SchedulerHarness(Timed(), [0])


def enqueued(harness):
    request = InferRequest("m", {}, harness.recorder.sink)
    harness.enqueue(request)
    return request


def test_the_clock_advances_to_the_time_of_ready(harness):
    start, request = harness.now_ns, enqueued(harness)
    [batch] = harness.finish()
    assert batch.requests == [request]
    assert harness.now_ns == start + 10**9
    assert harness.unanswered() == []


def test_the_clock_advances_to_the_time_of_expire(harness):
    harness.scheduler.runs = False
    start, request = harness.now_ns, enqueued(harness)
    assert harness.finish() == []
    assert harness.now_ns == start + 2 * 10**9
    assert harness.recorder.responses(request)[0].error.message == "too late"


def test_a_scheduler_without_a_next_time_is_an_error(harness):
    harness.scheduler.runs = False
    harness.scheduler.expire = lambda now_ns: None
    enqueued(harness)
    with pytest.raises(
        AssertionError, match="1 requests wait, but no batch is ready and no time is returned"
    ):
        harness.finish()
