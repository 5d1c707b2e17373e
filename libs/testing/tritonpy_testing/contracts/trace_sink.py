"""The contract of trace sinks."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

import numpy as np

from tritonpy import Batch, InferRequest, InferResponse, Internal, Tensor, now_ns
from tritonpy.tracing import Trace, TraceFamily, TraceLevel, TraceRule, TraceSink
from tritonpy_testing.contracts.optional import given, only_if
from tritonpy_testing.contracts.plugin import PluginContract
from tritonpy_testing.recording_sink import RecordingSink


class TraceSinkContract(PluginContract):
    """The contract of `TraceSink`.

    Set `plugin_class`, and `caller_headers` if it continues clients' traces.
    """

    interface = TraceSink
    hook = "tritonpy_trace_sinks"
    caller_headers: ClassVar[Mapping[str, str]] = {}

    def make(self) -> TraceSink:
        """Return a new sink."""
        sink = self.plugin_class(self.make_options())
        assert isinstance(sink, TraceSink)
        return sink

    def test_it_accepts_every_kind_of_family(self) -> None:
        sink = self.make()
        for family in _families(sink, None):
            sink.take(family)
        sink.close()

    def test_displayed_settings_are_text(self) -> None:
        sink = self.make()
        assert isinstance(sink.missing(), str)
        for name, value in sink.public_options().items():
            assert isinstance(name, str), name
            assert isinstance(value, str), f"{name} is shown as {value!r}"
        sink.close()

    def test_malformed_headers_continue_no_trace(self) -> None:
        sink = self.make()
        assert all(name == name.lower() for name in sink.headers), (
            "header names are compared in lower case"
        )
        for headers in (
            {},
            dict.fromkeys(sink.headers, ""),
            dict.fromkeys(sink.headers, "\xff nonsense"),
        ):
            assert sink.propagated(headers) is None, f"{headers} continued a trace"
        sink.close()

    @only_if(given("caller_headers"))
    def test_a_caller_s_trace_is_continued(self) -> None:
        sink = self.make()
        assert set(self.caller_headers) <= set(sink.headers), (
            "`headers` does not list the headers that it reads"
        )
        caller = sink.propagated(self.caller_headers)
        assert caller is not None
        for family in _families(sink, caller):
            sink.take(family)
        sink.close()

    def test_requests_may_begin_while_others_are_taken(self) -> None:
        sink, lock = self.make(), threading.Lock()

        def work(_number: int) -> None:
            for family in _families(sink, None):
                with lock:  # take() is never called concurrently
                    sink.take(family)

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(20)))
        sink.close()


def _families(sink: TraceSink, caller: Any) -> list[TraceFamily]:
    """Return ended families.

    One is of an answered request with a child, the others of a failed, a refused and a streamed
    request.
    """
    return [
        _finished(sink, caller),
        _failed(sink, caller),
        _refused(sink, caller),
        _streamed(sink, caller),
    ]


def _root(sink: TraceSink, caller: Any) -> Trace:
    level = TraceLevel.TIMESTAMPS | (TraceLevel.TENSORS if sink.takes_tensors else TraceLevel.OFF)
    trace = TraceFamily(
        level, TraceRule(level, 1, -1, 0, ""), caller, sink.begun, lambda _: None
    ).trace()
    assert trace is not None
    return trace


def _request(trace: Trace | None, *, executed: bool) -> InferRequest:
    now, tensor = now_ns(), Tensor.from_numpy("T", np.zeros((1, 2), np.float32))
    request = InferRequest(
        "model",
        {"T": tensor},
        RecordingSink().sink,
        1,
        "id",
        trace=trace,
        received_ns=now,
        queued_ns=now,
    )
    if executed:
        request.batch = Batch([request], start_ns=now, input_end_ns=now, infer_end_ns=now)
    if trace is not None:
        trace.begin("model", 1, request)
    return request


def _finished(sink: TraceSink, caller: Any) -> TraceFamily:
    root = _root(sink, caller)
    request = _request(root, executed=True)
    child = root.spawn()
    assert child is not None
    assert isinstance(str(root), str), "the trace context for models must be text"
    called = _request(child, executed=True)
    child.responded(called, InferResponse(list(called.inputs.values()), "model", 1), now_ns())
    root.responded(request, InferResponse(list(request.inputs.values()), "model", 1), now_ns())
    root.end()
    return root.family


def _failed(sink: TraceSink, caller: Any) -> TraceFamily:
    root = _root(sink, caller)
    request = _request(root, executed=False)
    root.responded(
        request, InferResponse.failed(request, Internal("it failed before it ran")), now_ns()
    )
    root.end()
    return root.family


def _refused(sink: TraceSink, caller: Any) -> TraceFamily:
    root = _root(sink, caller)
    root.stamp("HTTP_RECV_START")
    root.end()
    return root.family


def _streamed(sink: TraceSink, caller: Any) -> TraceFamily:
    root = _root(sink, caller)
    request = _request(root, executed=True)
    for _ in range(2):
        root.responded(
            request, InferResponse(list(request.inputs.values()), "model", 1, final=False), now_ns()
        )
    root.responded(request, InferResponse((), "model", 1, empty=True), now_ns())
    root.end()
    return root.family
