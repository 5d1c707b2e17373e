"""What server.yaml says under `routers: {traffic: …}`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from tritonpy import Options
from tritonpy_traffic.spec import RouteSpec


class TrafficOptions(Options, frozen=True):
    """Routes, and where what is changed at run time is kept."""

    routes: Annotated[
        dict[Annotated[str, Meta(min_length=1, pattern="^[^/]+$")], RouteSpec], Meta(description="Routes by name.")
    ] = msgspec.field(default_factory=dict)
    state_file: Annotated[
        Path | None, Meta(description="Where routes are kept across restarts, with what was changed at run time.")
    ] = None
    sticky_headers: Annotated[
        tuple[str, ...],
        Meta(description="Headers that routes made at run time may be sticky by, beside those of `routes`."),
    ] = ()
    sequence_idle_s: Annotated[
        float, Meta(gt=0, description="Seconds after which a sequence that says nothing may go elsewhere.")
    ] = 600.0

    def __post_init__(self) -> None:
        """Raise ValueError with everything that no single option shows."""
        problems = [f"routes.{name}.{text}" for name, spec in self.routes.items() for text in spec.problems()]
        if problems:
            raise ValueError("; ".join(problems))

    @property
    def headers(self) -> frozenset[str]:
        """The headers, in lower case, that a route may be sticky by."""
        named = (spec.sticky.header for spec in self.routes.values() if spec.sticky is not None)
        return frozenset(name.lower() for name in (*self.sticky_headers, *named) if name)
