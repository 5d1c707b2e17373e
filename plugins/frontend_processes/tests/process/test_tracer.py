from __future__ import annotations

from plugins.frontend_processes.tests.linked import linked
from plugins.frontend_processes.tests.test_frontend_session import until
from tritonpy.api.trace_sink import TraceSettings, TraceSink
from tritonpy.tracing.tracing import Tracing
from tritonpy_frontend_processes.start_message import TracerState
from tritonpy_testing.recording_sink import RecordingSink
from tritonpy_testing.toy_engine import ToyEngine
from tritonpy_types import InferRequest, TraceFamily

STATE = TracerState(active=True, headers=("traceparent",))


class RecordingTraceSink(TraceSink):
    headers = ("traceparent",)

    def __init__(self) -> None:
        super().__init__(None)
        self.families: list[TraceFamily] = []
        self.callers: list[object] = []

    def propagated(self, headers):
        self.callers.append(dict(headers))

    def take(self, family: TraceFamily) -> None:
        self.families.append(family)


def tracing(rate: int) -> tuple[Tracing, RecordingTraceSink]:
    sink = RecordingTraceSink()
    return Tracing(sink, TraceSettings(["TIMESTAMPS"], rate, -1, 0, "", "triton", {})), sink


def test_the_engine_samples_and_gets_all_time_stamps() -> None:
    tracer, sink = tracing(rate=2)
    with ToyEngine() as toy, linked(toy, tracer, STATE) as (_, end):
        recorder = RecordingSink()
        for number in range(4):
            request = InferRequest("nobody", {}, recorder.sink, id=str(number))
            trace = request.trace = end.tracer.sample("nobody", {"traceparent": "x"})
            trace.stamp("RECV", 10 + number)
            end.engine.infer(request)
            recorder.wait(request)
            end.thread.do(
                lambda trace=trace, number=number: (trace.stamp("SEND", 20 + number), trace.end())
            )
        until(lambda: len(sink.families) == 2)
    assert sink.callers == [{"traceparent": "x"}] * 4
    stamps = [
        [(stamp.name, stamp.ns) for stamp in family.traces[0].stamps()] for family in sink.families
    ]
    assert [(each[0], each[-1]) for each in stamps] == [
        (("RECV", 11), ("SEND", 21)),
        (("RECV", 13), ("SEND", 23)),
    ]
    tracer.close()


def test_a_trace_that_ended_before_the_response_is_sent_with_it() -> None:
    tracer, sink = tracing(rate=1)
    with ToyEngine() as toy, linked(toy, tracer, STATE) as (_, end):
        recorder = RecordingSink()
        request = InferRequest("nobody", {}, recorder.sink)
        request.trace = end.tracer.sample("nobody", {})
        with toy.hold():
            end.thread.do(lambda: (end.engine.infer(request), request.trace.end()))
        recorder.wait(request)
        until(lambda: sink.families)
    tracer.close()


def test_traces_of_a_dead_process_end() -> None:
    tracer, sink = tracing(rate=1)
    with ToyEngine() as toy, linked(toy, tracer, STATE) as (_, end):
        recorder = RecordingSink()
        request = InferRequest("nobody", {}, recorder.sink)
        request.trace = end.tracer.sample("nobody", {})
        end.engine.infer(request)
        recorder.wait(request)
        assert not sink.families
        end.thread.do(end.connection.close)
        until(lambda: sink.families)
    tracer.close()
