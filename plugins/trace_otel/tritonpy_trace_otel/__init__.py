"""The trace mode `opentelemetry`: spans with Triton's names, sent to a collector.

Start at `sink`; `spans` makes the spans.
"""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import hookimpl


@hookimpl
def tritonpy_trace_sinks() -> Mapping[str, str]:
    """Register the trace mode `opentelemetry`."""
    return {"opentelemetry": "tritonpy_trace_otel.sink:OpenTelemetrySink"}
