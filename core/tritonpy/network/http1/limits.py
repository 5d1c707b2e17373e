"""Limits of HTTP connections for size and time."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from msgspec import Meta

from tritonpy.api.options import Options
from tritonpy.config.server.expectation import ByteSize

_SHORTEST_PERIOD_S = 0.01  # an event loop's clock has milliseconds


class HttpLimits(NamedTuple):
    """Times in seconds, sizes in bytes.

    `body_s` is the longest time without progress of a body, or of a client that reads a response.
    """

    idle_s: float = 75
    head_s: float = 60
    body_s: float = 300
    head_size: int = 64 * 1024
    headers: int = 1000
    connections: int = 0  # 0 for no limit

    @property
    def period_s(self) -> float:
        """The interval of checks, short enough for every timeout."""
        return max(min(self.idle_s, self.head_s, self.body_s), _SHORTEST_PERIOD_S)


class HttpConnectionOptions(Options, frozen=True):
    """Options of a frontend that limit its connections."""

    keep_alive_s: Annotated[int, Meta(ge=0, description="Seconds after which an idle connection is closed")] = 75
    head_timeout_s: Annotated[
        float, Meta(gt=0, description="Seconds within which the head of a request must arrive")
    ] = 60
    body_timeout_s: Annotated[
        float, Meta(gt=0, description="Seconds without progress of a body, or of a client that reads a response")
    ] = 300
    max_head_size: Annotated[ByteSize, Meta(gt=0, description="Maximum size in bytes of request line and headers")] = (
        64 * 1024
    )
    max_headers: Annotated[int, Meta(gt=0, description="Maximum number of headers of a request")] = 1000
    max_connections: Annotated[
        int, Meta(ge=0, description="Maximum number of connections, 0 for no limit; others get status 503")
    ] = 0

    def limits(self) -> HttpLimits:
        """Return the limits as a value for connections."""
        return HttpLimits(
            self.keep_alive_s,
            self.head_timeout_s,
            self.body_timeout_s,
            self.max_head_size,
            self.max_headers,
            self.max_connections,
        )
