"""What an engine offers to frontends besides inference: operations, shared-memory regions and traces."""

from __future__ import annotations

from tritonpy.engine.operations import Operations
from tritonpy.shared_memory import Regions, hold_regions
from tritonpy.tracing.rule import TraceRule
from tritonpy.tracing.tracing import Tracing
from tritonpy.types.trace import TraceLevel

__all__ = ["Operations", "Regions", "TraceLevel", "TraceRule", "Tracing", "hold_regions"]
