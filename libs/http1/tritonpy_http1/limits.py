"""Limits of HTTP connections for size and time."""

from __future__ import annotations

from typing import NamedTuple, Protocol

_SHORTEST_PERIOD_S = 0.01  # an event loop's clock has milliseconds


class LimitSettings(Protocol):
    """The options of a server that limit its connections, as a user writes them."""

    @property
    def keep_alive_s(self) -> float:
        """Seconds after which an idle connection is closed."""

    @property
    def head_timeout_s(self) -> float:
        """Seconds within which the head of a request must arrive."""

    @property
    def body_timeout_s(self) -> float:
        """Seconds without progress of a body, or of a client that reads a response."""

    @property
    def max_head_size(self) -> int:
        """Maximum size in bytes of request line and headers."""

    @property
    def max_headers(self) -> int:
        """Maximum number of headers of a request."""

    @property
    def max_connections(self) -> int:
        """Maximum number of connections, 0 for no limit."""


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

    @classmethod
    def from_settings(cls, settings: LimitSettings) -> HttpLimits:
        """Return the limits of `settings`."""
        return cls(
            settings.keep_alive_s,
            settings.head_timeout_s,
            settings.body_timeout_s,
            settings.max_head_size,
            settings.max_headers,
            settings.max_connections,
        )
