from __future__ import annotations

from tritonpy_worker.api.trace import InferenceTrace


def test_an_empty_trace_has_no_context():
    trace = InferenceTrace()
    assert trace.get_context() is None
    assert trace.request is None


def test_the_context_is_queried_on_demand(host):
    trace = InferenceTrace.received(host, 4)
    assert trace.request == 4
    assert trace.get_context() is None
    host.contexts[4] = ""
    assert trace.get_context() is None
    host.contexts[4] = '{"traceparent":"00"}'
    assert trace.get_context() == '{"traceparent":"00"}'
