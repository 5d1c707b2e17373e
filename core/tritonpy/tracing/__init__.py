"""Traces: settings, sampling, and the interface of trace sinks.

Start at `tracing`, which decides what is traced. The modules import each other directly and `api`;
plugins import the names below from here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tritonpy.lazy_names import lazy_names

if TYPE_CHECKING:
    from tritonpy.api.trace_sink import TraceChanges, Tracer, TraceSettings, TraceSink
    from tritonpy.tracing.protocol_settings import trace_changes, trace_texts
    from tritonpy.tracing.rule import TraceRule
    from tritonpy.tracing.tracing import Tracing
    from tritonpy_types import Trace, TraceFamily, synthetic_parent
    from tritonpy_types.trace import TraceLevel

__all__ = [
    "Trace",
    "TraceChanges",
    "TraceFamily",
    "TraceLevel",
    "TraceRule",
    "TraceSettings",
    "TraceSink",
    "Tracer",
    "Tracing",
    "synthetic_parent",
    "trace_changes",
    "trace_texts",
]

__getattr__ = lazy_names(
    __name__,
    {
        "tritonpy.api.trace_sink": ("TraceChanges", "TraceSettings", "TraceSink", "Tracer"),
        "tritonpy.tracing.protocol_settings": ("trace_changes", "trace_texts"),
        "tritonpy.tracing.rule": ("TraceRule",),
        "tritonpy.tracing.tracing": ("Tracing",),
        "tritonpy_types": ("Trace", "TraceFamily", "synthetic_parent"),
        "tritonpy_types.trace": ("TraceLevel",),
    },
)
