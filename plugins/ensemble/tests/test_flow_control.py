"""Back-pressure on members: `max_inflight_requests` and slow clients."""

from __future__ import annotations

import pytest

from tritonpy import Batch, Cancelled, InferRequest, Internal, OutputSpec
from tritonpy.frontend import FlowControl, StreamSink
from tritonpy_ensemble.ensemble_run import MAX_HELD

from .scripted_engine import DECOUPLED, ensemble, make_harness, member, step

STEPS = step("many", "IN", "OUT=MID") + step("one", "IN=MID", "OUT")
MANY, ONE = member("many", decoupled=True), member("one")


def limited(most=2):
    return make_harness(ensemble(STEPS, more=DECOUPLED, most=most), MANY, ONE)


def send_response(harness, call, number=0):
    harness.engine.respond(call, OUT=[number], final=False)


def ones(harness):
    return [call for call in harness.engine.in_flight if call.model_name == "one"]


class SlowClient(StreamSink):
    """A client whose stream has a window of `most` responses and reads on demand."""

    def __init__(self, most):
        self.flow_control = FlowControl(most, 1 << 30)

    def put(self, request, response):
        self.flow_control.put(0)

    def ready(self, request):
        return self.flow_control.ready

    def when_ready(self, request, callback):
        self.flow_control.when_ready(callback)

    def cancelled(self, request):
        self.flow_control.release()


def test_calls_in_flight_of_a_step_do_not_exceed_the_limit():
    harness = limited()
    request = harness.send(IN=[1])
    many = harness.engine.calls[0]
    for number in range(5):
        send_response(harness, many, number)
    assert len(ones(harness)) == 2
    harness.engine.respond(ones(harness)[0], OUT=[0])
    assert len(ones(harness)) == 2
    harness.engine.end_stream(many)
    while ones(harness):
        harness.engine.respond(ones(harness)[0], OUT=[1])
    assert len(harness.responses(request)) == 5
    assert harness.is_idle()


def test_the_limit_is_shared_by_all_requests_of_the_ensemble():
    harness = make_harness(ensemble(step("one", "IN", "OUT"), most=1), ONE)
    requests = [harness.send(IN=[number]) for number in range(3)]
    assert len(harness.engine.calls) == 1
    for number in range(3):
        assert len(harness.engine.in_flight) == 1
        harness.engine.respond(harness.engine.in_flight[0], OUT=[number])
    assert [harness.responses(request) for request in requests] == [
        [{"OUT": [number]}] for number in range(3)
    ]
    assert harness.is_idle()


def test_each_step_has_a_separate_limit():
    config = ensemble(step("one", "IN", "OUT=MID") + step("one", "IN=MID", "OUT"), most=1)
    harness = make_harness(config, ONE)
    for number in range(2):
        harness.send(IN=[number])
    harness.engine.respond(harness.engine.in_flight[0], OUT=[0])
    # The second step of one request, the first of the other.
    assert len(harness.engine.in_flight) == 2


def test_an_omitted_step_does_not_shift_the_limits_of_others():
    config = ensemble(
        step("one", "IN", "OUT=A") + step("two", "IN", "OUT=B"), outputs="A B", most=1
    )
    harness = make_harness(config, ONE, member("two"))
    harness.send(IN=[1], outputs={"B": OutputSpec("B")})
    harness.send(IN=[1])
    assert sorted(call.model_name for call in harness.engine.in_flight) == ["one", "two"]


def test_a_rejected_call_releases_its_limit():
    harness = make_harness(ensemble(step("one", "IN", "OUT"), most=1), ONE)
    first, second = harness.send(IN=[1]), harness.send(IN=[2])
    harness.engine.refusal = Internal("no")
    third = harness.send(IN=[3])
    harness.engine.respond(harness.engine.in_flight[0], OUT=[1])
    assert harness.responses(first) == [{"OUT": [1]}]
    for request in (second, third):
        with pytest.raises(Internal, match="in ensemble 'e', no"):
            harness.responses(request)
    harness.engine.refusal = None
    harness.send(IN=[4])
    assert len(harness.engine.in_flight) == 1


def test_a_request_cancelled_while_waiting_fails_immediately():
    harness = make_harness(ensemble(step("one", "IN", "OUT"), most=1), ONE)
    harness.send(IN=[1])
    waiting, last = harness.send(IN=[2]), harness.send(IN=[3])
    waiting.cancel()
    with pytest.raises(Cancelled, match=r"^in ensemble 'e', Request cancelled \(step 0"):
        harness.responses(waiting)
    harness.engine.respond(harness.engine.in_flight[0], OUT=[1])
    harness.engine.respond(harness.engine.in_flight[0], OUT=[3])
    assert harness.responses(last) == [{"OUT": [3]}]
    assert harness.is_idle()


def test_a_nested_request_does_not_wait_for_its_parent_call():
    harness = make_harness(ensemble(step("one", "IN", "OUT"), most=1), ONE)
    outer = harness.send(IN=[1])
    call_of_outer = harness.engine.calls[0]
    inner = harness.send(
        IN=[2], parent=InferRequest("one", {}, harness.recorder.sink, parent=call_of_outer)
    )
    assert len(harness.engine.in_flight) == 2
    harness.engine.respond(harness.engine.calls[1], OUT=[2])
    unrelated = harness.send(IN=[3])
    assert len(harness.engine.in_flight) == 1
    harness.engine.respond(call_of_outer, OUT=[1])
    harness.engine.respond(harness.engine.calls[2], OUT=[3])
    assert [harness.responses(request) for request in (inner, outer, unrelated)] == [
        [{"OUT": [number]}] for number in (2, 1, 3)
    ]
    assert harness.is_idle()


def test_a_request_from_an_execution_is_not_limited():
    harness = make_harness(ensemble(step("one", "IN", "OUT"), most=1), ONE)
    outer = harness.send(IN=[1])
    batch = Batch([])
    caller = InferRequest("other", {}, harness.recorder.sink, batch=batch)
    batch.executing = True
    inner = harness.send(IN=[2], parent=caller)
    assert len(harness.engine.in_flight) == 2
    batch.executing = False
    late = harness.send(IN=[3], parent=caller)
    assert len(harness.engine.in_flight) == 2
    for number in (1, 2, 3):
        harness.engine.respond(harness.engine.calls[number - 1], OUT=[number])
    assert [harness.responses(request) for request in (outer, inner, late)] == [
        [{"OUT": [number]}] for number in (1, 2, 3)
    ]
    assert harness.is_idle()


def test_a_failed_request_leaves_the_limiter_queue():
    harness = limited(1)
    request = harness.send(IN=[1])
    many = harness.engine.calls[0]
    for number in range(3):
        send_response(harness, many, number)
    harness.engine.fail(ones(harness)[0], Internal("boom"))
    assert ones(harness) == []
    harness.engine.end_stream(many)
    with pytest.raises(Internal, match="boom"):
        harness.responses(request)
    assert harness.is_idle()


def test_members_pause_while_calls_for_their_responses_wait():
    harness, called = limited(1), []
    harness.send(IN=[1])
    many = harness.engine.calls[0]
    send_response(harness, many)
    assert many.sink.ready(many)
    send_response(harness, many)
    assert not many.sink.ready(many)
    many.sink.when_ready(many, lambda: called.append(True))
    assert not called
    harness.engine.respond(ones(harness)[0], OUT=[0])
    assert called == [True]
    assert many.sink.ready(many)


def test_a_member_that_blocks_waiting_calls_does_not_pause():
    """Pausing it would deadlock: the waiting calls wait for its end."""
    config = ensemble(
        step("many", "IN", "OUT=MID") + step("more", "IN=MID", "OUT"), more=DECOUPLED, most=1
    )
    harness = make_harness(config, MANY, member("more", decoupled=True))
    harness.send(IN=[1])
    many = harness.engine.calls[0]
    send_response(harness, many)
    send_response(harness, many)
    more = harness.engine.calls[1]
    assert not many.sink.ready(many)
    assert more.sink.ready(more)


def test_members_pause_while_the_client_does_not_read():
    harness, client, called = limited(5), SlowClient(1), []
    harness.send(IN=[1], sink=client)
    many = harness.engine.calls[0]
    assert many.sink.ready(many)
    send_response(harness, many)
    harness.engine.respond(ones(harness)[0], OUT=[0])
    assert not many.sink.ready(many)
    many.sink.when_ready(many, lambda: called.append(True))
    assert not called
    client.flow_control.take()
    assert called == [True]


@pytest.mark.parametrize("ends", ["cancelled", "failed", "call cancelled"])
def test_a_paused_member_is_called_back_when_its_request_ends(ends):
    harness, called = limited(1), []
    request = harness.send(IN=[1])
    many = harness.engine.calls[0]
    send_response(harness, many)
    send_response(harness, many)
    many.sink.when_ready(many, lambda: called.append(True))
    if ends == "cancelled":
        request.cancel()
    elif ends == "failed":
        harness.engine.fail(ones(harness)[0], Internal("boom"))
    else:
        many.cancel()
    assert called == [True]
    harness.engine.end_stream(many)
    many.sink.when_ready(many, lambda: called.append(True))
    assert called == [True, True] or ends == "call cancelled"


def test_members_pause_while_many_responses_wait_for_an_earlier_one():
    harness = make_harness(ensemble(STEPS, more=DECOUPLED), MANY, ONE)
    request = harness.send(IN=[1])
    many = harness.engine.calls[0]
    for number in range(MAX_HELD + 1):
        send_response(harness, many, number)
    first, *others = ones(harness)
    for call in others:
        assert many.sink.ready(many)
        harness.engine.respond(call, OUT=[1])
    assert not many.sink.ready(many)
    assert first.sink.ready(first)
    harness.engine.respond(first, OUT=[0])
    assert many.sink.ready(many)
    assert len(harness.responses(request)) == MAX_HELD + 1
