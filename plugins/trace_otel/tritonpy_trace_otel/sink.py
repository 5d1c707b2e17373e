"""The trace sink that sends spans of traced requests to OpenTelemetry's SDK."""

from __future__ import annotations

from collections.abc import Mapping

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import get_current_span
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from tritonpy.tracing import Trace, TraceFamily, TraceSink
from tritonpy_trace_otel.options import OpenTelemetryOptions, attributes, limits
from tritonpy_trace_otel.spans import FamilySpans

TRACER = "triton-server"


class OpenTelemetrySink(TraceSink):
    """Creates spans with Triton's names and attributes.

    A request with `traceparent` is traced at any rate, as a child of its caller's span.
    """

    Options = OpenTelemetryOptions
    takes_tensors = False
    headers = ("traceparent", "tracestate")

    def __init__(
        self, options: OpenTelemetryOptions, processor: SpanProcessor | None = None
    ) -> None:
        """Create the tracer.

        `processor` receives the spans instead of the default one, which exports them to the
        configured collector.
        """
        super().__init__(options)
        self._limits = limits(options)
        # the server has already sampled
        self._provider = TracerProvider(
            ALWAYS_ON, Resource.create(attributes(options)), shutdown_on_exit=False
        )
        self._provider.add_span_processor(processor or self._make_processor(options))
        self._tracer = self._provider.get_tracer(TRACER)
        self._propagator = TraceContextTextMapPropagator()

    def _make_processor(self, options: OpenTelemetryOptions) -> SpanProcessor:
        return BatchSpanProcessor(
            OTLPSpanExporter(options.url or None),
            max_queue_size=self._limits["bsp_max_queue_size"],
            schedule_delay_millis=self._limits["bsp_schedule_delay"],
            max_export_batch_size=min(
                self._limits["bsp_max_export_batch_size"], self._limits["bsp_max_queue_size"]
            ),
        )

    def public_options(self) -> Mapping[str, str]:
        options: OpenTelemetryOptions = self.options
        given = {"url": options.url, "resource": ",".join(options.resource)}
        return {name: text for name, text in given.items() if text} | {
            name: str(value) for name, value in self._limits.items()
        }

    def propagated(self, headers: Mapping[str, str]) -> Context | None:
        context = self._propagator.extract(dict(headers), Context())
        return context if get_current_span(context).get_span_context().is_valid else None

    def begun(self, trace: Trace) -> None:
        self._spans(trace.family).begin(trace)

    def take(self, family: TraceFamily) -> None:
        self._spans(family).finish(family)

    def _spans(self, family: TraceFamily) -> FamilySpans:
        if family.state is None:
            family.state = FamilySpans(self._tracer, family.caller, family.begun_ns)
        spans: FamilySpans = family.state
        return spans

    def close(self) -> None:
        self._provider.shutdown()
