"""Claiming of a TCP port for several processes."""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


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


def claim_port(host: str, port: int, *, reuse: bool) -> ClaimedAddress:
    """Bind a port without listening; 0 means any free port. Raises OSError.

    With `reuse` other servers may bind the same port.
    """
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    bound = socket.socket(family, kind, protocol)
    try:
        if reuse:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        _bind(bound, address)
        # Not before bind(): this server could take a port that another server's processes share.
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    except BaseException:
        bound.close()
        raise
    taken = bound.getsockname()[1]
    return ClaimedAddress(
        Claim(f"{f'[{host}]' if ':' in host else host}:{taken}", taken), bound.close
    )


def _bind(bound: socket.socket, address: tuple[Any, ...]) -> None:
    try:
        bound.bind(address)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        # Allow a port with old connections in TIME_WAIT, but not one with a listener.
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
