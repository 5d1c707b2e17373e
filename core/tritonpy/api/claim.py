"""Addresses that one process reserves and several processes serve."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Claim:
    """An address that several processes serve; `address` is `host:port` or `unix:/path`.

    All processes accept from the listening socket `listening` if it is set. Otherwise each process
    listens on `port` with SO_REUSEPORT, and the kernel distributes the connections. If `listening`
    is None and `port` is 0, only the first process listens. `process` is the index of the process,
    from 0.
    """

    address: str
    port: int = 0
    listening: socket.socket | None = None
    process: int = 0


@dataclass(frozen=True, slots=True)
class ClaimedAddress:
    """A reserved address; call `close` to release it after the processes have ended."""

    claim: Claim
    close: Callable[[], None]
