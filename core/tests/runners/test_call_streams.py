from __future__ import annotations

from types import SimpleNamespace

from tritonpy.ipc.windows import MAX_ANSWERS
from tritonpy.runners.call_streams import CallStream, CallStreams
from tritonpy.types import InferRequest


def filled(stream: CallStream, answers: int = MAX_ANSWERS) -> CallStream:
    for _ in range(answers):
        stream.room.put(1)
    return stream


def call_of(model: str, *, runs: bool) -> InferRequest:
    request = InferRequest(model, {}, None, tag=CallStream())
    request.batch = SimpleNamespace() if runs else None
    return request


def hold(call: InferRequest) -> None:
    """Use its window up, and let the producer wait."""
    filled(call.tag).room.when_ready(lambda: None)


def held_call(model: str) -> InferRequest:
    call = call_of(model, runs=True)
    hold(call)
    return call


def test_a_window_is_used_up_until_half_of_it_was_taken():
    stream, called = filled(CallStream()), []
    stream.room.when_ready(lambda: called.append(1))
    stream.took(MAX_ANSWERS // 2 - 1)
    assert called == []
    stream.took()
    assert called == [1]


def test_an_overdrawn_stream_goes_on_for_one_window_and_what_it_said_is_taken_later():
    stream = filled(CallStream())
    stream.overdraw()
    assert (stream.room.ready, stream.untaken) == (True, MAX_ANSWERS)
    filled(stream)
    assert (stream.room.ready, stream.untaken) == (False, 2 * MAX_ANSWERS)
    stream.took(MAX_ANSWERS)
    assert not stream.room.ready
    stream.took(MAX_ANSWERS)
    assert (stream.room.ready, stream.untaken) == (True, 0)


def test_a_producer_that_goes_on_while_it_is_overdrawn_goes_on_for_one_window():
    stream = filled(CallStream())
    stream.room.when_ready(lambda: filled(stream))
    stream.overdraw()
    assert stream.untaken == 2 * MAX_ANSWERS
    stream.took(2 * MAX_ANSWERS)
    assert stream.untaken == 0


def test_who_was_left_waits_for_nobody():
    stream, called = filled(CallStream()), []
    stream.room.when_ready(lambda: called.append(1))
    stream.leave()
    assert (called, stream.left, stream.room.ready) == ([1], True, True)


def test_a_stream_that_holds_the_instance_its_caller_waits_for_goes_on():
    streams = CallStreams()
    held, waits = held_call("child"), call_of("child", runs=False)
    for call in (held, waits):
        streams.begin(call)
    streams.let_go_on()
    assert held.tag.room.holds_back
    streams.want(waits)
    assert not held.tag.room.holds_back
    hold(held)
    streams.let_go_on()
    assert not held.tag.room.holds_back


def test_one_that_still_waits_though_a_little_was_taken_goes_on_too():
    streams = CallStreams()
    held, waits = held_call("child"), call_of("child", runs=False)
    for call in (held, waits):
        streams.begin(call)
    held.tag.took()
    assert (held.tag.room.ready, held.tag.room.holds_back) == (True, True)
    streams.want(waits)
    assert not held.tag.room.holds_back


def test_one_of_another_model_or_one_that_runs_itself_changes_nothing():
    for other in (call_of("other", runs=False), call_of("child", runs=True)):
        streams, held = CallStreams(), held_call("child")
        for call in (held, other):
            streams.begin(call)
        streams.want(other)
        assert held.tag.room.holds_back


def test_what_is_over_is_waited_for_no_more():
    streams = CallStreams()
    held, over, answered = held_call("child"), call_of("child", runs=False), call_of("child", runs=False)
    for call in (held, over, answered):
        streams.begin(call)
    answered.answered = True
    streams.want(answered)
    streams.end(over)
    streams.want(over)
    assert held.tag.room.holds_back
