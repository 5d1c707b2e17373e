"""Options of server.yaml under `routers: {traffic: …}`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from tritonpy import Options
from tritonpy_traffic.spec import RouteSpec


class TrafficOptions(Options, frozen=True):
    """Configured routes, and where to save run-time changes."""

    routes: Annotated[
        dict[Annotated[str, Meta(min_length=1, pattern="^[^/]+$")], RouteSpec],
        Meta(description="Routes by name."),
    ] = msgspec.field(default_factory=dict)
    state_file: Annotated[
        Path | None,
        Meta(description="File that keeps routes and run-time changes across restarts."),
    ] = None
    sticky_headers: Annotated[
        tuple[str, ...],
        Meta(
            description=(
                "Headers that routes created at run time may be sticky by, "
                "in addition to those of `routes`."
            )
        ),
    ] = ()
    sequence_idle_s: Annotated[
        float,
        Meta(
            gt=0,
            description=(
                "Seconds without a request after which a sequence may go to another target."
            ),
        ),
    ] = 600.0

    def __post_init__(self) -> None:
        """Raise `ValueError` with all problems that concern several options."""
        problems = [
            f"routes.{name}.{text}"
            for name, spec in self.routes.items()
            for text in spec.problems()
        ]
        if problems:
            raise ValueError("; ".join(problems))

    @property
    def headers(self) -> frozenset[str]:
        """The header names, in lower case, that routes may be sticky by."""
        named = (spec.sticky.header for spec in self.routes.values() if spec.sticky is not None)
        return frozenset(name.lower() for name in (*self.sticky_headers, *named) if name)
