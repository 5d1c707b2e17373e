"""How much and for how long a connection may ask."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from msgspec import Meta

from tritonpy.api.options import Options
from tritonpy.config.server.byte_size import ByteSize

_SHORTEST_PERIOD_S = 0.01  # an event loop's clock has milliseconds


class HttpLimits(NamedTuple):
    """Times in seconds, sizes in bytes. `body_s` is how long a body, or a client that reads its answer, may stand still."""

    idle_s: float = 75
    head_s: float = 60
    body_s: float = 300
    head_size: int = 64 * 1024
    headers: int = 1000
    connections: int = 0  # 0 for any number

    @property
    def period_s(self) -> float:
        """How often a connection is checked, so that no timeout is noticed late."""
        return max(min(self.idle_s, self.head_s, self.body_s), _SHORTEST_PERIOD_S)


class HttpConnectionOptions(Options, frozen=True):
    """Options of a frontend that limit each of its connections."""

    keep_alive_s: Annotated[int, Meta(ge=0, description="Seconds after which an idle connection is closed")] = 75
    head_timeout_s: Annotated[
        float, Meta(gt=0, description="Seconds within which the head of a request must arrive")
    ] = 60
    body_timeout_s: Annotated[
        float, Meta(gt=0, description="Seconds that a body may stand still, or a client that reads its answer")
    ] = 300
    max_head_size: Annotated[ByteSize, Meta(gt=0, description="Largest request line and headers, in bytes")] = 64 * 1024
    max_headers: Annotated[int, Meta(gt=0, description="Most headers of a request")] = 1000
    max_connections: Annotated[
        int, Meta(ge=0, description="Most connections at a time, 0 for any number; one more is answered 503")
    ] = 0

    def limits(self) -> HttpLimits:
        """Return the limits of a connection."""
        return HttpLimits(
            self.keep_alive_s,
            self.head_timeout_s,
            self.body_timeout_s,
            self.max_head_size,
            self.max_headers,
            self.max_connections,
        )
