from __future__ import annotations

import json
from typing import ClassVar

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

import tritonpy_trace_otel
from tritonpy import InferRequest, InferResponse
from tritonpy.tracing import Trace, TraceChanges, TraceFamily, TraceSettings
from tritonpy.tracing.tracing import Tracing
from tritonpy_testing import RecordingSink, TraceSinkContract
from tritonpy_trace_otel.options import OpenTelemetryOptions
from tritonpy_trace_otel.sink import OpenTelemetrySink
from tritonpy_types import Batch, TraceLevel

CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
COMPUTE = ["COMPUTE_START", "COMPUTE_INPUT_END", "COMPUTE_OUTPUT_START", "COMPUTE_END"]


class TestOpenTelemetry(TraceSinkContract):
    plugin_class = OpenTelemetrySink
    plugin = tritonpy_trace_otel
    name = "opentelemetry"
    caller_headers: ClassVar = {"traceparent": CALLER}

    def make(self) -> OpenTelemetrySink:
        return OpenTelemetrySink(
            OpenTelemetryOptions(), SimpleSpanProcessor(InMemorySpanExporter())
        )


class Spans:
    """A sink and its spans by name."""

    def __init__(self, **options: object) -> None:
        self._exporter = InMemorySpanExporter()
        self.sink = OpenTelemetrySink(
            OpenTelemetryOptions(**options), SimpleSpanProcessor(self._exporter)
        )

    def family(self, caller: object = None) -> TraceFamily:
        return TraceFamily(TraceLevel.TIMESTAMPS, None, caller, self.sink.begun, self.sink.take)

    def named(self, name: str) -> ReadableSpan:
        (found,) = [span for span in self._exporter.get_finished_spans() if span.name == name]
        return found

    def names(self) -> list[str]:
        return [span.name for span in self._exporter.get_finished_spans()]


def begun(trace: Trace, model: str, request_id: str = "") -> InferRequest:
    now = trace.family.begun_ns
    request = InferRequest(
        model,
        {},
        RecordingSink().sink,
        id=request_id,
        trace=trace,
        received_ns=now + 10,
        queued_ns=now + 20,
    )
    request.batch = Batch(
        [request], start_ns=now + 30, input_end_ns=now + 40, infer_end_ns=now + 50
    )
    trace.begin(model, 3, request)
    return request


def finish(trace: Trace, request: InferRequest) -> None:
    trace.responded(request, InferResponse((), request.model_name, 3), trace.family.begun_ns + 60)


def events(span: ReadableSpan) -> list[str]:
    return [event.name for event in span.events]


@pytest.fixture
def spans() -> Spans:
    return Spans()


def test_a_request_becomes_three_spans_with_triton_s_names(spans: Spans) -> None:
    root = spans.family().trace()
    assert root is not None
    root.stamp("HTTP_RECV_START")
    request = begun(root, "my_model", "an id")
    finish(root, request)
    root.stamp("HTTP_SEND_END")
    root.end()
    assert sorted(spans.names()) == ["InferRequest", "compute", "my_model"]
    outer, model, compute = (spans.named(name) for name in ("InferRequest", "my_model", "compute"))
    assert outer.parent is None
    assert model.parent == outer.context
    assert compute.parent == model.context
    assert {span.kind for span in (outer, model, compute)} == {SpanKind.SERVER}
    assert {span.instrumentation_scope.name for span in (outer, model, compute)} == {
        "triton-server"
    }
    assert dict(model.attributes or {}) == {
        "triton.model_name": "my_model", "triton.model_version": 3, "triton.trace_id": root.id,
        "triton.trace_parent_id": 0, "triton.request_id": "an id",
    }  # fmt: skip
    assert events(outer) == ["HTTP_RECV_START", "INFER_RESPONSE_COMPLETE", "HTTP_SEND_END"]
    assert events(model) == ["REQUEST_START", "QUEUE_START", "REQUEST_END"]
    assert events(compute) == COMPUTE
    assert (compute.end_time - compute.start_time, model.end_time - model.start_time) == (30, 50)


def test_a_request_without_an_id_has_no_id_attribute(spans: Spans) -> None:
    root = spans.family().trace()
    assert root is not None
    finish(root, begun(root, "m"))
    root.end()
    assert "triton.request_id" not in (spans.named("m").attributes or {})


def test_a_request_from_a_model_is_a_child_of_the_model_s_span(spans: Spans) -> None:
    root = spans.family().trace()
    assert root is not None
    request = begun(root, "caller")
    child = root.spawn()
    assert child is not None
    finish(child, begun(child, "called"))
    finish(root, request)
    root.end()
    called = spans.named("called")
    assert called.parent == spans.named("caller").context
    assert called.attributes is not None
    assert called.attributes["triton.trace_parent_id"] == root.id
    assert spans.names().count("compute") == 2


def test_a_caller_s_span_is_the_parent_of_all(spans: Spans) -> None:
    caller = spans.sink.propagated({"traceparent": CALLER, "tracestate": "a=b"})
    root = spans.family(caller).trace()
    assert root is not None
    request = begun(root, "m")
    context = json.loads(str(root))
    finish(root, request)
    root.end()
    outer, model = spans.named("InferRequest"), spans.named("m")
    assert outer.parent is not None
    assert f"{outer.parent.span_id:016x}" == "b7ad6b7169203331"
    assert f"{model.context.trace_id:032x}" == "0af7651916cd43dd8448eb211c80319c"
    assert context == {
        "traceparent": f"00-0af7651916cd43dd8448eb211c80319c-{model.context.span_id:016x}-01",
        "tracestate": "a=b",
    }


def test_a_request_without_a_caller_begins_a_trace(spans: Spans) -> None:
    root = spans.family().trace()
    assert root is not None
    finish(root, begun(root, "m"))
    assert json.loads(str(root)).keys() == {"traceparent"}
    root.end()
    assert spans.named("InferRequest").parent is None


@pytest.mark.parametrize(
    "header",
    [
        "",
        "x",
        "00-0-0-00",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        CALLER.replace("00-", "ff-", 1),
    ],
)
def test_an_invalid_header_is_ignored(spans: Spans, header: str) -> None:
    assert spans.sink.propagated({"traceparent": header}) is None


def test_a_rejected_request_has_one_span(spans: Spans) -> None:
    root = spans.family().trace()
    assert root is not None
    root.stamp("HTTP_RECV_START")
    root.end()
    assert spans.names() == ["InferRequest"]


def test_a_request_that_begins_again_has_one_span(spans: Spans) -> None:
    root = spans.family().trace()
    assert root is not None
    begun(root, "m")
    request = begun(root, "m")
    finish(root, request)
    root.end()
    assert spans.names().count("m") == 1


def test_public_options_are_text() -> None:
    public_options = Spans(
        url="http://127.0.0.1:1/x", resource=("a=b", "c=d"), bsp_schedule_delay=7
    ).sink.public_options()
    assert public_options["url"] == "http://127.0.0.1:1/x"
    assert public_options["resource"] == "a=b,c=d"
    assert public_options["bsp_schedule_delay"] == "7"


def test_a_rate_of_zero_traces_only_requests_with_a_parent(spans: Spans) -> None:
    tracing = Tracing(spans.sink, TraceSettings(["TIMESTAMPS"], 0, -1, 0, "", "opentelemetry", {}))
    assert tracing.active
    assert tracing.sample("m", {}) is None
    assert tracing.sample("m", {"traceparent": CALLER}) is not None
    tracing.change(TraceChanges(level=[]))
    assert not tracing.active
    tracing.close()


def test_attributes_of_the_call_are_on_its_span(spans: Spans) -> None:
    trace = spans.family().trace()
    assert trace is not None
    trace.attributes["gen_ai.usage.output_tokens"] = 7
    request = begun(trace, "story")
    trace.stamp("FIRST_TOKEN")
    trace.attributes["gen_ai.response.finish_reasons"] = ["stop"]
    finish(trace, request)
    trace.end()
    span = spans.named("story")
    assert span.attributes is not None
    assert span.attributes["gen_ai.usage.output_tokens"] == 7
    assert span.attributes["gen_ai.response.finish_reasons"] == ("stop",)
    assert "FIRST_TOKEN" in events(span)
