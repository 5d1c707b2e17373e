"""What an engine offers to frontends besides inference: operations, shared-memory regions and traces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tritonpy.lazy_names import lazy_names

if TYPE_CHECKING:
    from tritonpy.engine.operations import Operations
    from tritonpy.shared_memory import Regions, hold_regions
    from tritonpy.tracing.rule import TraceRule
    from tritonpy.tracing.tracing import Tracing
    from tritonpy.types.trace import TraceLevel

__all__ = [
    "Operations",
    "Regions",
    "TraceLevel",
    "TraceRule",
    "Tracing",
    "hold_regions",
]

__getattr__ = lazy_names(
    __name__,
    {
        "tritonpy.engine.operations": ("Operations",),
        "tritonpy.shared_memory": ("Regions", "hold_regions"),
        "tritonpy.tracing.rule": ("TraceRule",),
        "tritonpy.tracing.tracing": ("Tracing",),
        "tritonpy.types.trace": ("TraceLevel",),
    },
)
