from __future__ import annotations

from types import SimpleNamespace

from tritonpy.runners.call_streams import CallStream, CallStreams
from tritonpy_ipc.windows import MAX_RESPONSES
from tritonpy_types import InferRequest


def filled(stream: CallStream, answers: int = MAX_RESPONSES) -> CallStream:
    for _ in range(answers):
        stream.flow_control.put(1)
    return stream


def call_of(model: str, *, runs: bool) -> InferRequest:
    request = InferRequest(model, {}, None, tag=CallStream())
    request.batch = SimpleNamespace() if runs else None
    return request


def fill_window(call: InferRequest) -> None:
    """Use up the window of `call`, so that its producer waits."""
    filled(call.tag).flow_control.when_ready(lambda: None)


def held_call(model: str) -> InferRequest:
    call = call_of(model, runs=True)
    fill_window(call)
    return call


def test_a_full_window_blocks_until_half_of_it_is_consumed():
    stream, called = filled(CallStream()), []
    stream.flow_control.when_ready(lambda: called.append(1))
    stream.consume(MAX_RESPONSES // 2 - 1)
    assert called == []
    stream.consume()
    assert called == [1]


def test_an_extended_stream_may_send_one_window_more():
    stream = filled(CallStream())
    stream.extend_window()
    assert (stream.flow_control.ready, stream.unconsumed) == (True, MAX_RESPONSES)
    filled(stream)
    assert (stream.flow_control.ready, stream.unconsumed) == (False, 2 * MAX_RESPONSES)
    stream.consume(MAX_RESPONSES)
    assert not stream.flow_control.ready
    stream.consume(MAX_RESPONSES)
    assert (stream.flow_control.ready, stream.unconsumed) == (True, 0)


def test_a_producer_that_sends_during_the_extension_sends_one_window():
    stream = filled(CallStream())
    stream.flow_control.when_ready(lambda: filled(stream))
    stream.extend_window()
    assert stream.unconsumed == 2 * MAX_RESPONSES
    stream.consume(2 * MAX_RESPONSES)
    assert stream.unconsumed == 0


def test_an_abandoned_stream_does_not_block_its_producer():
    stream, called = filled(CallStream()), []
    stream.flow_control.when_ready(lambda: called.append(1))
    stream.abandon()
    assert (called, stream.abandoned, stream.flow_control.ready) == ([1], True, True)


def test_a_stream_that_holds_the_awaited_instance_resumes():
    streams = CallStreams()
    held, waits = held_call("child"), call_of("child", runs=False)
    for call in (held, waits):
        streams.begin(call)
    streams.resume_blocked()
    assert held.tag.flow_control.blocks_producer
    streams.mark_awaited(waits)
    assert not held.tag.flow_control.blocks_producer
    fill_window(held)
    streams.resume_blocked()
    assert not held.tag.flow_control.blocks_producer


def test_a_partly_consumed_blocked_stream_resumes_too():
    streams = CallStreams()
    held, waits = held_call("child"), call_of("child", runs=False)
    for call in (held, waits):
        streams.begin(call)
    held.tag.consume()
    assert (held.tag.flow_control.ready, held.tag.flow_control.blocks_producer) == (True, True)
    streams.mark_awaited(waits)
    assert not held.tag.flow_control.blocks_producer


def test_a_call_to_another_model_or_a_running_one_changes_nothing():
    for other in (call_of("other", runs=False), call_of("child", runs=True)):
        streams, held = CallStreams(), held_call("child")
        for call in (held, other):
            streams.begin(call)
        streams.mark_awaited(other)
        assert held.tag.flow_control.blocks_producer


def test_a_finished_call_is_not_awaited():
    streams = CallStreams()
    held, over, answered = (
        held_call("child"),
        call_of("child", runs=False),
        call_of("child", runs=False),
    )
    for call in (held, over, answered):
        streams.begin(call)
    answered.finished = True
    streams.mark_awaited(answered)
    streams.end(over)
    streams.mark_awaited(over)
    assert held.tag.flow_control.blocks_producer
