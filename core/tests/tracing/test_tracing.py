from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tritonpy import TraceChanges, TraceSettings, TraceSink
from tritonpy.errors import InvalidArgument
from tritonpy.tracing.tracing import Tracing

from .families import answer, request


class RecordingTraceSink(TraceSink):
    """A sink that records families and replaced rules."""

    def __init__(self):
        super().__init__(None)
        self.calls = []
        self.taken = threading.Semaphore(0)

    def take(self, family):
        self.calls.append(("take", family))
        self.taken.release()

    def settled(self, rule):
        self.calls.append(("settled", rule))

    def close(self):
        self.calls.append(("close", threading.current_thread()))


class Continuing(RecordingTraceSink):
    headers = ("caller",)
    takes_tensors = False

    def propagated(self, headers):
        return headers.get("caller")

    def begun(self, trace):
        trace.context = "the context"


class Failing(Continuing):
    def propagated(self, headers):
        raise RuntimeError("no")

    def begun(self, trace):
        raise RuntimeError("no")

    def take(self, family):
        raise RuntimeError("no")


def tracing(sink, level=("TIMESTAMPS",), rate=1, count=-1, frequency=0):
    return Tracing(sink, TraceSettings(list(level), rate, count, frequency, "f", "triton", {}))


def kinds(sink):
    return [kind for kind, _ in sink.calls]


def test_traces_of_a_sampled_request_reach_the_sink_together():
    sink = RecordingTraceSink()
    tracer = tracing(sink)
    root = tracer.sample("m", {})
    child = root.spawn()
    child.end()
    root.end()
    tracer.close()
    assert sink.calls[0] == ("take", root.family)
    assert root.family.traces == [root, child]
    assert kinds(sink) == ["take", "close"]


def test_it_is_active_as_long_as_something_may_be_traced():
    tracer = tracing(RecordingTraceSink(), level=())
    assert not tracer.active
    assert tracer.sample("m", {}) is None
    tracer.change(TraceChanges(level=["TENSORS"]), "m")
    assert tracer.active
    assert tracer.sample("other", {}) is None
    assert tracer.sample("m", {}) is not None
    tracer.change(TraceChanges(level=None), "m")
    assert not tracer.active
    tracer.close()


def test_settings_have_the_remaining_count():
    tracer = tracing(RecordingTraceSink(), count=2)
    tracer.sample("m", {})
    assert tracer.settings() == TraceSettings(["TIMESTAMPS"], 1, 1, 0, "f", "triton", {})
    tracer.change(TraceChanges(rate=9), "m")
    assert tracer.settings("m").rate == 9
    assert tracer.settings("other").rate == 1


def test_a_replaced_rule_is_settled_after_its_last_trace():
    sink = RecordingTraceSink()
    tracer = tracing(sink)
    root = tracer.sample("m", {})
    tracer.change(TraceChanges(rate=5))
    tracer.change(TraceChanges(rate=6))
    root.end()
    tracer.close()
    first, (kind, settled) = sink.calls[0], sink.calls[2]
    assert first[0] == "settled"
    assert first[1].rate == 5
    assert (kind, settled) == ("settled", root.family.rule)


def test_a_change_refused_for_one_model_applies_to_the_others():
    tracer = tracing(RecordingTraceSink(), level=())
    tracer.change(TraceChanges(rate=0), "m")
    with pytest.raises(InvalidArgument):
        tracer.change(TraceChanges(level=["TIMESTAMPS"]))
    assert tracer.active
    assert tracer.settings().level == ["TIMESTAMPS"]


def test_a_client_s_trace_is_continued_for_any_rate():
    tracer = tracing(Continuing(), rate=0)
    assert tracer.active
    assert tracer.sample("m", {}) is None
    assert tracer.sample("m", {"caller": "somebody"}).family.caller == "somebody"


def test_a_sink_without_tensors_gets_none(caplog):
    sink = Continuing()
    tracer = tracing(sink, level=("TIMESTAMPS", "TENSORS"))
    trace = tracer.sample("m", {})
    called = request(trace)
    trace.begin("m", 1, called)
    trace.responded(called, answer(), 60)
    assert {type(note).__name__ for note in trace.notes} == {"TimeStamp"}
    assert str(trace) == "the context"
    assert "does not record tensors" in caplog.text


def test_a_failing_sink_loses_traces_but_no_request(caplog):
    tracer = tracing(Failing())
    trace = tracer.sample("m", {"caller": "x"})
    trace.begin("m", 1, request(trace))
    trace.end()
    tracer.close()
    assert [record.getMessage() for record in caplog.records] == [
        "the client's trace is not continued", "a trace is lost", "a trace is lost",
    ]  # fmt: skip


def test_a_mode_with_a_missing_setting_warns_and_traces_nothing(caplog):
    sink = RecordingTraceSink()
    sink.missing = lambda: "a thing is not given"
    tracer = tracing(sink)
    assert not tracer.active
    assert tracer.sample("m", {}) is None
    assert "nothing is traced: a thing is not given" in caplog.text


def test_no_request_is_sampled_after_close():
    tracer = tracing(RecordingTraceSink())
    tracer.close()
    assert not tracer.active


def test_many_threads_are_counted_together():
    sink = RecordingTraceSink()
    tracer = tracing(sink, rate=4, count=50)
    with ThreadPoolExecutor(8) as pool:
        traces = [trace for trace in pool.map(lambda _: tracer.sample("m", {}), range(400)) if trace]
    assert len(traces) == 50
    assert tracer.settings().count == 0
    for trace in traces:
        trace.end()
    tracer.close()
    assert kinds(sink).count("take") == 50


def test_activity_changed_is_called_when_settings_change():
    tracing = Tracing(RecordingTraceSink(), TraceSettings([], 1, -1, 0, "", "triton", {}))
    seen = []
    tracing.activity_changed = lambda: seen.append(tracing.active)
    tracing.change(TraceChanges(level=["TIMESTAMPS"]))
    tracing.change(TraceChanges(level=["OFF"]))
    assert seen == [True, False]
    tracing.close()
