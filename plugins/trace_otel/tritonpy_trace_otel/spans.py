"""Spans of a trace family: InferRequest > one span per request > compute."""

from __future__ import annotations

import json
import time

from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, Tracer, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from tritonpy import now_ns
from tritonpy.tracing import Trace, TraceFamily

_COMPUTE = "COMPUTE_"
_OF_REQUEST = frozenset({"REQUEST_START", "QUEUE_START", "FIRST_TOKEN", "REQUEST_END"})
_PROPAGATOR = TraceContextTextMapPropagator()


class FamilySpans:
    """The spans of one trace family. They start with its requests and end when all have ended.

    The server's times are monotonic. `offset_ns` converts them to wall-clock time.
    """

    def __init__(self, tracer: Tracer, caller: Context | None, begun_ns: int) -> None:
        self._tracer = tracer
        self._offset_ns = time.time_ns() - now_ns()
        self._requests: dict[int, Span] = {}
        self._root = self._start("InferRequest", caller, begun_ns)

    def begin(self, trace: Trace) -> None:
        """Start the span of a request and set its trace's context.

        A repeated call has no effect.
        """
        if trace.id in self._requests:
            return
        parent = self._requests.get(trace.parent_id, self._root)
        started_ns = dict(trace.stamps()).get("REQUEST_START", trace.family.begun_ns)
        span = self._requests[trace.id] = self._start(
            trace.model_name, set_span_in_context(parent), started_ns
        )
        span.set_attribute("triton.model_name", trace.model_name)
        span.set_attribute("triton.model_version", trace.model_version)
        span.set_attribute("triton.trace_id", trace.id)
        span.set_attribute("triton.trace_parent_id", trace.parent_id)
        if trace.request_id:
            span.set_attribute("triton.request_id", trace.request_id)
        carrier: dict[str, str] = {}
        _PROPAGATOR.inject(carrier, set_span_in_context(span))
        trace.context = json.dumps(carrier, separators=(",", ":"))

    def finish(self, family: TraceFamily) -> None:
        """Add the events and end every span."""
        for trace in family.traces:
            self._finish(trace, self._requests.get(trace.id), family.ended_ns)
        self._root.end(family.ended_ns + self._offset_ns)

    def _finish(self, trace: Trace, request: Span | None, ended_ns: int) -> None:
        stamps = dict(trace.stamps())
        compute: Span | None = None
        if request is not None and "COMPUTE_START" in stamps:
            compute = self._start("compute", set_span_in_context(request), stamps["COMPUTE_START"])
        for name, ns in trace.stamps():
            span = (
                compute
                if name.startswith(_COMPUTE)
                else request
                if name in _OF_REQUEST
                else self._root
            )
            if span is not None:
                span.add_event(name, timestamp=ns + self._offset_ns)
        if compute is not None:
            compute.end(stamps["COMPUTE_END"] + self._offset_ns)
        if request is not None:
            request.set_attributes(trace.attributes)
            request.end(stamps.get("REQUEST_END", ended_ns) + self._offset_ns)

    def _start(self, name: str, parent: Context | None, ns: int) -> Span:
        return self._tracer.start_span(
            name,
            parent if parent is not None else Context(),
            SpanKind.SERVER,
            start_time=ns + self._offset_ns,
        )
