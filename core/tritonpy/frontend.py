"""What an engine offers to frontends besides inference: operations, shared-memory regions and traces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tritonpy.lazy_names import lazy_names

if TYPE_CHECKING:
    from tritonpy.access.authorizer import make_authorizer
    from tritonpy.engine.operations import Operations
    from tritonpy.logs import follow_log_settings, log_settings
    from tritonpy.plugins.manager import frontend_classes
    from tritonpy.request_memory import memory_metrics, request_memory
    from tritonpy.shared_memory import Regions, hold_regions
    from tritonpy.tracing.file_sink import FileOptions, FileSink
    from tritonpy.tracing.rule import TraceRule
    from tritonpy.tracing.tracing import Tracing
    from tritonpy.types.trace import TraceLevel

__all__ = [
    "FileOptions",
    "FileSink",
    "Operations",
    "Regions",
    "TraceLevel",
    "TraceRule",
    "Tracing",
    "follow_log_settings",
    "frontend_classes",
    "hold_regions",
    "log_settings",
    "make_authorizer",
    "memory_metrics",
    "request_memory",
]

__getattr__ = lazy_names(
    __name__,
    {
        "tritonpy.access.authorizer": ("make_authorizer",),
        "tritonpy.engine.operations": ("Operations",),
        "tritonpy.logs": ("follow_log_settings", "log_settings"),
        "tritonpy.plugins.manager": ("frontend_classes",),
        "tritonpy.request_memory": ("memory_metrics", "request_memory"),
        "tritonpy.shared_memory": ("Regions", "hold_regions"),
        "tritonpy.tracing.file_sink": ("FileOptions", "FileSink"),
        "tritonpy.tracing.rule": ("TraceRule",),
        "tritonpy.tracing.tracing": ("Tracing",),
        "tritonpy.types.trace": ("TraceLevel",),
    },
)
