from __future__ import annotations

from tritonpy_worker.api.trace import InferenceTrace


def test_a_trace_of_nothing_has_no_context():
    trace = InferenceTrace()
    assert trace.get_context() is None
    assert trace.request is None


def test_the_context_is_asked_for_when_it_is_wanted(host):
    trace = InferenceTrace.received(host, 4)
    assert trace.request == 4
    assert trace.get_context() is None
    host.contexts[4] = ""
    assert trace.get_context() is None
    host.contexts[4] = '{"traceparent":"00"}'
    assert trace.get_context() == '{"traceparent":"00"}'
