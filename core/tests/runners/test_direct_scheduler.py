from __future__ import annotations

import pytest

from tritonpy import CallbackSink, Cancelled, InferRequest, Unavailable
from tritonpy.runners.direct_scheduler import DirectScheduler
from tritonpy.scheduling import Scheduler, SchedulerContext


@pytest.fixture
def scheduler():
    return DirectScheduler(SchedulerContext("m", 1, None, None, lambda name: None, lambda: None))


@pytest.fixture
def answers():
    return []


@pytest.fixture
def request_of(answers):
    sink = CallbackSink(lambda request, response: answers.append((request, response)))
    return lambda name, **fields: InferRequest("m", {}, sink, id=name, **fields)


def test_an_empty_scheduler_has_nothing(scheduler):
    assert scheduler.ready(0, 0) is False
    assert scheduler.take(0, 0) is None
    assert scheduler.pending() == ()


def test_each_request_is_one_execution_first_in_first_out(scheduler, request_of):
    first, second = request_of("a", batch_size=3), request_of("b", priority=1)
    scheduler.enqueue(first)
    scheduler.enqueue(second)
    assert scheduler.pending() == (first, second)
    for instance, expected in ((1, first), (0, second)):
        assert scheduler.ready(instance, 0) is True
        assert scheduler.take(instance, 0).requests == [expected]
    assert scheduler.ready(0, 0) is False


def test_a_cancelled_request_gets_a_response_and_is_not_taken(scheduler, request_of, answers):
    first, second = request_of("a"), request_of("b")
    scheduler.enqueue(first)
    scheduler.enqueue(second)
    scheduler.cancel(first)
    ((answered, response),) = answers
    assert answered is first
    assert type(response.error) is Cancelled
    assert scheduler.take(0, 0).requests == [second]


def test_cancelling_a_request_that_does_not_wait_does_nothing(scheduler, request_of, answers):
    request = request_of("a")
    scheduler.cancel(request)
    scheduler.enqueue(request)
    scheduler.take(0, 0)
    scheduler.cancel(request)
    assert answers == []


def test_a_stopped_scheduler_refuses_new_requests_and_serves_waiting_ones(scheduler, request_of):
    scheduler.enqueue(request_of("a"))
    scheduler.stop()
    with pytest.raises(Unavailable) as refused:
        scheduler.enqueue(request_of(""))
    assert refused.value.message == (
        "[request id: <id_unknown>] "
        "Server is stopping, scheduler for model has stopped accepting new inference requests"
    )
    assert scheduler.take(0, 0) is not None


def test_prefetch_is_allowed_since_a_request_cannot_become_a_larger_batch():
    assert DirectScheduler.prefetch
    assert not Scheduler.prefetch


def test_requeued_requests_come_before_waiting_ones(scheduler, request_of):
    first, second, third = (request_of(name) for name in "abc")
    for each in (first, second, third):
        scheduler.enqueue(each)
    taken = [*scheduler.take(0, 0).requests, *scheduler.take(0, 0).requests]
    assert scheduler.requeue(taken) == ()
    assert scheduler.pending() == (first, second, third)
