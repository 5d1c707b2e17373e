from __future__ import annotations

from typing import Any

import pytest

from tritonpy.tracing import Trace, TraceFamily, Tracer
from tritonpy_types import TraceLevel

from .conftest import LiveFrontend


class RecordingTracer(Tracer):
    """Traces every request; `ended` has the traces."""

    active = True

    def __init__(self) -> None:
        self.ended: list[Trace] = []

    def sample(self, model_name: str, headers: Any) -> Trace | None:
        def end(family: TraceFamily) -> None:
            self.ended += family.traces

        return TraceFamily(TraceLevel.TIMESTAMPS, None, None, lambda _trace: None, end).trace()


@pytest.mark.parametrize("stream", [False, True])
def test_a_trace_has_the_tokens_and_the_end_of_a_chat(engine: Any, stream: bool) -> None:
    tracer = RecordingTracer()
    engine.script = lambda _call: [
        {"text_output": "Hello"},
        {"text_output": " you", "finish_reason": "stop"},
    ]
    live = LiveFrontend(engine, tracer=tracer)
    try:
        messages: Any = [{"role": "user", "content": "Hi"}]
        reply = live.client.chat.completions.create(
            model="story", messages=messages, stream=stream, stream_options=None
        )
        if stream:
            list(reply)
    finally:
        live.close()
    [trace] = tracer.ended
    found = trace.attributes
    assert found["gen_ai.operation.name"] == "chat"
    assert found["gen_ai.request.model"] == "story"
    assert found["gen_ai.response.finish_reasons"] == ["stop"]
    assert found["gen_ai.usage.input_tokens"] == 7
    assert found["gen_ai.usage.output_tokens"] == 2
    assert "FIRST_TOKEN" in {stamp.name for stamp in trace.stamps()}
