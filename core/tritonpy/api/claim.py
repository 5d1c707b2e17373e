"""An address that is taken once and then served by several processes."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Claim:
    """Where clients come in: `host:port` or `unix:/path`, as `address`.

    `listening` is a socket that listens, from which all processes accept; without it each listens by itself: on `port` with SO_REUSEPORT, so that
    the kernel spreads the connections, or, where there is no port either, the first process alone. `process` counts them from 0.
    """

    address: str
    port: int = 0
    listening: socket.socket | None = None
    process: int = 0


@dataclass(frozen=True, slots=True)
class Claimed:
    """A claim in the hands of who took it; `close` gives it up, once the processes are gone."""

    claim: Claim
    close: Callable[[], None]
