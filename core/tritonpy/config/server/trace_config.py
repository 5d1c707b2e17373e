"""The section `trace` of server.yaml."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

DEFAULT_MODE = "triton"


class TraceConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which requests are traced and how.

    The values under `modes` are options of the mode's class.
    """

    mode: Annotated[
        str, Meta(min_length=1, description="triton: JSON files; opentelemetry: spans for a collector (trace-otel).")
    ] = DEFAULT_MODE
    level: Annotated[
        list[Literal["OFF", "TIMESTAMPS", "TENSORS"]], Meta(description="What to record; empty: nothing.")
    ] = []
    rate: Annotated[int, Meta(ge=0, le=2**32 - 1, description="Trace one request out of this many.")] = 1000
    count: Annotated[int, Meta(ge=-1, le=2**31 - 1, description="Number of traces; -1: no limit.")] = -1
    modes: Annotated[dict[str, dict[str, Any]], Meta(description="Options of each mode.")] = {}
