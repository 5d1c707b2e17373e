from __future__ import annotations

import pytest

from tritonpy import Cancelled, InvalidArgument, QueueTimeout, Unavailable
from tritonpy.scheduling import BatchPolicy, Run, Wait

PLAIN = "max_batch_size: 4 dynamic_batching {}"
DELAYED = (
    "max_batch_size: 4 dynamic_batching { preferred_batch_size: 2 max_queue_delay_microseconds: 1 }"
)
TIMED = "max_batch_size: 4 dynamic_batching { default_queue_policy { default_timeout_microseconds: 1 } }"


def taken(scheduler, now=0, **limit):
    batch = scheduler.take(0, now, **limit)
    return None if batch is None else [request.id for request in batch.requests]


def test_an_empty_scheduler_has_no_batch(scheduler_of):
    scheduler = scheduler_of(PLAIN)
    assert scheduler.ready(0, 0) is False
    assert scheduler.take(0, 0) is None
    assert scheduler.expire(0) is None
    assert scheduler.pending() == ()


def test_waiting_requests_form_one_batch(scheduler_of, request_of):
    scheduler = scheduler_of(PLAIN)
    for name in "abcde":
        scheduler.enqueue(request_of(name))
    assert scheduler.ready(1, 0) is True
    assert taken(scheduler) == ["a", "b", "c", "d"]
    assert scheduler.ready(0, 0) is True
    assert taken(scheduler) == ["e"]
    assert scheduler.ready(0, 0) is False


def test_coalesced_requests_are_queued_at_once(scheduler_of, request_of):
    scheduler = scheduler_of(DELAYED)
    scheduler.enqueue(request_of("a"))
    assert scheduler.ready(0, 0) == 1000
    assert scheduler.enqueue_many([request_of("b"), request_of("c")])
    assert scheduler.ready(0, 0) is True
    assert taken(scheduler) == ["a", "b"]
    assert [request.id for request in scheduler.pending()] == ["c"]


def test_coalesced_requests_are_not_queued_if_one_could_be_rejected(
    scheduler_of, request_of, monkeypatch
):
    full = scheduler_of(
        "max_batch_size: 4 dynamic_batching { default_queue_policy { max_queue_size: 1 } }"
    )
    assert not full.enqueue_many([request_of("a"), request_of("b")])
    stopped = scheduler_of(PLAIN)
    stopped.stop()
    assert not stopped.enqueue_many([request_of("a")])
    monkeypatch.setenv("TRITONSERVER_DELAY_SCHEDULER", "3")
    held = scheduler_of(PLAIN)
    assert not held.enqueue_many([request_of("a")])
    assert [each.pending() for each in (full, stopped, held)] == [(), (), ()]


def test_a_batch_grows_between_ready_and_take(scheduler_of, request_of):
    scheduler = scheduler_of(PLAIN)
    scheduler.enqueue(request_of("a"))
    assert scheduler.ready(0, 0) is True
    scheduler.enqueue(request_of("b"))
    assert taken(scheduler) == ["a", "b"]


def test_take_respects_its_limit(scheduler_of, request_of):
    scheduler = scheduler_of(PLAIN)
    for name in "abc":
        scheduler.enqueue(request_of(name))
    assert taken(scheduler, limit=2) == ["a", "b"]
    assert taken(scheduler, limit=2) == ["c"]


def test_the_delay_starts_with_the_oldest_request(scheduler_of, request_of):
    scheduler = scheduler_of(DELAYED)
    scheduler.enqueue(request_of("a", at=100))
    assert scheduler.ready(0, 1_099) == 1_100
    assert scheduler.take(0, 1_099) is None
    assert scheduler.ready(0, 1_100) is True
    assert taken(scheduler, 1_100) == ["a"]


def test_a_preferred_size_ends_the_delay(scheduler_of, request_of):
    scheduler = scheduler_of(DELAYED)
    scheduler.enqueue(request_of("a"))
    assert scheduler.ready(0, 1) == 1_000
    scheduler.enqueue(request_of("b", at=1))
    assert taken(scheduler, 1) == ["a", "b"]


def test_a_batch_taken_after_the_delay_includes_all_requests(scheduler_of, request_of):
    scheduler = scheduler_of(DELAYED)
    for name in "abc":
        scheduler.enqueue(request_of(name))
    assert scheduler.ready(0, 999) is True
    assert taken(scheduler, 1_000) == ["a", "b", "c"]


def test_a_request_of_another_shape_ends_the_delay_of_earlier_ones(scheduler_of, request_of):
    scheduler = scheduler_of(DELAYED + 'input { name: "IN" dims: -1 }')
    scheduler.enqueue(request_of("a"))
    scheduler.enqueue(request_of("b", shape=(5,)))
    assert taken(scheduler, 1) == ["a"]
    assert scheduler.ready(0, 1) == 1_000


def test_ragged_inputs_share_a_batch(scheduler_of, request_of):
    scheduler = scheduler_of(PLAIN + 'input { name: "IN" dims: -1 allow_ragged_batch: true }')
    scheduler.enqueue(request_of("a"))
    scheduler.enqueue(request_of("b", shape=(5,)))
    assert taken(scheduler) == ["a", "b"]


def test_priorities_come_first(scheduler_of, request_of):
    scheduler = scheduler_of(
        "max_batch_size: 2 dynamic_batching { priority_levels: 2 default_priority_level: 2 }"
    )
    scheduler.enqueue(request_of("a"))
    assert scheduler.ready(0, 0) is True
    scheduler.enqueue(request_of("b", priority=2))
    scheduler.enqueue(request_of("c", priority=1))
    assert [request.id for request in scheduler.pending()] == ["c", "a", "b"]
    assert taken(scheduler) == ["c", "a"]


def test_a_level_has_its_own_queue_policy(scheduler_of, request_of):
    scheduler = scheduler_of(
        "max_batch_size: 2 dynamic_batching { priority_levels: 2 default_priority_level: 2 "
        "priority_queue_policy { key: 1 value { max_queue_size: 1 } } }"
    )
    scheduler.enqueue(request_of("a", priority=1))
    with pytest.raises(Unavailable, match=r"^\[request id: b\] Exceeds maximum queue size$"):
        scheduler.enqueue(request_of("b", priority=1))
    scheduler.enqueue(request_of("c"))
    assert taken(scheduler) == ["a", "c"]


def test_an_overdue_request_gets_its_error_from_expire(scheduler_of, request_of, responses):
    scheduler = scheduler_of(TIMED)
    request = request_of("a", at=500)
    scheduler.enqueue(request)
    assert scheduler.expire(500) == 1_500
    assert scheduler.expire(1_500) is None
    ((finished, response),) = responses
    assert finished is request
    assert type(response.error) is QueueTimeout
    assert response.error.message == "Request timeout expired"
    assert scheduler.ready(0, 1_500) is False


def test_an_overdue_request_is_never_taken(scheduler_of, request_of, responses):
    scheduler = scheduler_of(TIMED)
    scheduler.enqueue(request_of("a", at=0))
    scheduler.enqueue(request_of("b", at=10))
    assert scheduler.ready(0, 999) is True
    assert taken(scheduler, 1_000) == ["b"]
    assert [request.id for request, _ in responses] == ["a"]
    scheduler.enqueue(request_of("c", at=1_000))
    assert scheduler.take(0, 9_000) is None


def test_a_delayed_request_is_served_last_and_not_rejected(scheduler_of, request_of, responses):
    scheduler = scheduler_of(
        "max_batch_size: 1 dynamic_batching { default_queue_policy { timeout_action: DELAY default_timeout_microseconds: 1 } }"
    )
    scheduler.enqueue(request_of("a", at=0))
    scheduler.enqueue(request_of("b", at=10))
    assert scheduler.expire(1_000) == 1_010
    assert taken(scheduler, 1_000) == ["b"]
    assert taken(scheduler, 9_000) == ["a"]
    assert responses == []


def test_a_cancelled_request_gets_its_error_and_does_not_run(scheduler_of, request_of, responses):
    scheduler = scheduler_of(DELAYED)
    first, second = request_of("a"), request_of("b")
    scheduler.enqueue(first)
    scheduler.enqueue(second)
    assert scheduler.ready(0, 0) is True
    scheduler.cancel(first)
    ((finished, response),) = responses
    assert finished is first
    assert type(response.error) is Cancelled
    assert scheduler.ready(0, 0) == 1_000
    assert taken(scheduler, 1_000) == ["b"]


def test_cancelling_a_request_that_does_not_wait_does_nothing(scheduler_of, request_of, responses):
    scheduler = scheduler_of(PLAIN)
    request = request_of("a")
    scheduler.cancel(request)
    scheduler.enqueue(request)
    scheduler.take(0, 0)
    scheduler.cancel(request)
    assert responses == []


def test_a_stopped_scheduler_rejects_requests_and_serves_waiting_ones(scheduler_of, request_of):
    scheduler = scheduler_of(PLAIN)
    scheduler.enqueue(request_of("a"))
    scheduler.stop()
    with pytest.raises(Unavailable) as refused:
        scheduler.enqueue(request_of("b"))
    assert refused.value.message == (
        "[request id: b] Server is stopping, scheduler for model has stopped accepting new inference requests"
    )
    assert taken(scheduler) == ["a"]


def test_the_model_parameter_names_the_policy(scheduler_of, request_of):
    class OneByOne(BatchPolicy):
        def plan(self, pending, now_ns):
            return Run(1) if now_ns >= 7 else Wait(7)

    scheduler = scheduler_of(
        PLAIN + 'parameters { key: "batch_policy" value { string_value: "single" } }',
        {"single": OneByOne},
    )
    scheduler.enqueue(request_of("a"))
    scheduler.enqueue(request_of("b"))
    assert scheduler.ready(0, 6) == 7
    assert taken(scheduler, 7) == ["a"]


def test_the_delay_variable_holds_requests_until_enough_are_queued(
    scheduler_of, request_of, responses, monkeypatch
):
    monkeypatch.setenv("TRITONSERVER_DELAY_SCHEDULER", "3")
    scheduler = scheduler_of(TIMED)
    for name in "ab":
        scheduler.enqueue(request_of(name, at=0))
        assert scheduler.expire(5_000) is None
        assert scheduler.ready(0, 5_000) is False
        assert scheduler.take(0, 5_000) is None
    scheduler.enqueue(request_of("c", at=4_500))
    assert taken(scheduler, 5_000) == ["c"]
    assert [request.id for request, _ in responses] == ["a", "b"]
    scheduler.enqueue(request_of("d", at=5_000))
    assert taken(scheduler, 5_000) == ["d"]


def test_a_delay_variable_that_is_not_a_number_is_rejected(scheduler_of, monkeypatch):
    monkeypatch.setenv("TRITONSERVER_DELAY_SCHEDULER", "many")
    with pytest.raises(
        InvalidArgument,
        match="TRITONSERVER_DELAY_SCHEDULER must be a number of requests, it is 'many'",
    ):
        scheduler_of(PLAIN)


def test_requeued_requests_run_before_waiting_ones(scheduler_of, request_of):
    scheduler = scheduler_of(PLAIN)
    for name in "abcde":
        scheduler.enqueue(request_of(name))
    batch = scheduler.take(0, 0)
    assert scheduler.requeue(batch.requests) == ()
    assert [taken(scheduler), taken(scheduler)] == [["a", "b", "c", "d"], ["e"]]
