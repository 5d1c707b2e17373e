from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tritonpy.tracing import TraceChanges, TraceSettings, TraceSink
from tritonpy.tracing.tracing import TraceRules, TraceThread, Tracing, level_from_names, level_names
from tritonpy_types import TraceLevel
from tritonpy_types.errors import InvalidArgument

from .families import BOTH, answer, request, rule


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
        traces = [
            trace for trace in pool.map(lambda _: tracer.sample("m", {}), range(400)) if trace
        ]
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


def test_tasks_run_in_order_in_their_own_thread():
    thread, ran = TraceThread(), []
    for number in range(20):
        thread.send(lambda number=number: ran.append((number, threading.current_thread().name)))
    assert thread.close()
    assert ran == [(number, "traces") for number in range(20)]


def test_no_thread_starts_without_a_task():
    before = set(threading.enumerate())
    thread = TraceThread()
    assert thread.close()
    assert set(threading.enumerate()) <= before


def test_a_failing_task_is_logged_and_the_next_one_runs(caplog):
    thread, ran = TraceThread(), []
    thread.send(lambda: 1 / 0)
    thread.send(lambda: ran.append(1))
    thread.close()
    assert ran == [1]
    assert [record.getMessage() for record in caplog.records] == ["a trace is lost"]


def test_excess_tasks_are_lost_immediately_and_logged_once(caplog):
    thread, ran, started, go = TraceThread(max_waiting=2), [], threading.Event(), threading.Event()

    def hold():
        started.set()
        assert go.wait(20)

    thread.send(hold)
    assert started.wait(20)
    for number in range(10):
        thread.send(lambda number=number: ran.append(number))
    go.set()
    assert thread.close()
    assert ran == [0, 1]
    assert [record.getMessage() for record in caplog.records] == [
        "traces are lost: they arrive faster than they can be written"
    ]


def test_a_task_that_never_ends_does_not_block_close(monkeypatch, caplog):
    monkeypatch.setattr("tritonpy.tracing.tracing._CLOSE_S", 0.01)
    thread, go = TraceThread(), threading.Event()
    thread.send(lambda: go.wait(20))
    assert not thread.close()
    assert "could not be written" in caplog.text
    go.set()
    thread._thread.join(20)


def test_no_task_runs_after_close():
    thread, ran = TraceThread(), []
    thread.close()
    thread.send(lambda: ran.append(1))
    assert ran == []


@pytest.fixture
def rules():
    return TraceRules(rule(TraceLevel.TIMESTAMPS, rate=10, count=5, log_frequency=2))


def values(made):
    return made.level, made.rate, made.count, made.log_frequency


def test_a_model_inherits_from_the_server_and_the_server_from_its_start(rules):
    assert values(rules.find("m")) == values(rules.find("")) == (TraceLevel.TIMESTAMPS, 10, 5, 2)


def test_a_model_s_own_value_stays_while_others_are_inherited(rules):
    rules.change("m", TraceChanges(rate=3))
    rules.change("", TraceChanges(rate=7, log_frequency=9))
    assert values(rules.find("m")) == (TraceLevel.TIMESTAMPS, 3, 5, 9)
    assert values(rules.find("other")) == (TraceLevel.TIMESTAMPS, 7, 5, 9)


def test_clearing_restores_the_inherited_setting(rules):
    rules.change("m", TraceChanges(rate=3, count=1))
    rules.change("", TraceChanges(rate=7))
    rules.change("m", TraceChanges(rate=None))
    assert values(rules.find("m")) == (TraceLevel.TIMESTAMPS, 7, 1, 2)
    rules.change("", TraceChanges(rate=None))
    assert rules.find("m").rate == rules.find("").rate == 10


def test_a_model_without_own_values_uses_the_server_s_rule(rules):
    rules.change("m", TraceChanges(rate=3))
    assert len(rules.all()) == 2
    rules.change("m", TraceChanges(rate=None))
    assert rules.find("m") is rules.find("")
    assert len(rules.all()) == 1


def test_an_empty_change_creates_no_rule(rules):
    rules.change("m", TraceChanges())
    assert rules.all() == [rules.find("")]


def test_a_change_restarts_counting_with_the_remaining_count(rules):
    rules.change("", TraceChanges(rate=1, count=3))
    rules.find("").sample(continues=False)
    rules.change("", TraceChanges(log_frequency=4))
    assert rules.find("").count == 2
    assert rules.find("").chosen == 0
    rules.change("", TraceChanges(count=None))
    assert rules.find("").count == 5


@pytest.mark.parametrize("model", ["", "m"])
def test_settings_that_cannot_trace_are_refused_and_change_nothing(rules, model):
    before = values(rules.find(model))
    with pytest.raises(InvalidArgument) as refused:
        rules.change(model, TraceChanges(rate=0))
    assert (
        refused.value.message
        == "Attempting to set invalid trace setting :sample rate must be non-zero"
    )
    assert values(rules.find(model)) == before


def test_a_rate_of_zero_is_allowed_while_tracing_is_off(rules):
    rules.change("", TraceChanges(level=[], rate=0))
    with pytest.raises(InvalidArgument, match="sample rate"):
        rules.change("", TraceChanges(level=["TENSORS"]))


def test_a_mode_with_a_missing_setting_cannot_be_enabled():
    rules = TraceRules(rule(TraceLevel.OFF, missing_setting="trace file name is not given"))
    with pytest.raises(InvalidArgument) as refused:
        rules.change("", TraceChanges(level=["TIMESTAMPS"]))
    assert (
        refused.value.message
        == "Attempting to set invalid trace setting :trace file name is not given"
    )
    rules.change("", TraceChanges(rate=5))
    assert rules.find("").rate == 5


@pytest.mark.parametrize(
    ("names", "level"),
    [([], TraceLevel.OFF), (["TENSORS"], TraceLevel.TENSORS), (["TIMESTAMPS", "TENSORS"], BOTH)],
)
def test_levels_have_names(names, level):
    assert level_from_names(names) == level
    assert level_names(level) == names


def test_a_level_named_twice_is_the_same_level():
    assert level_from_names(["TENSORS", "TENSORS"]) == TraceLevel.TENSORS
