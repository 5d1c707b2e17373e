"""A TCP port that is taken for several processes."""

from __future__ import annotations

import errno
import socket
from typing import Any

from tritonpy.api.claim import Claim, Claimed


def claim_port(host: str, port: int, *, reuse: bool) -> Claimed:
    """Bind a port, 0 for a free one, without listening; with `reuse` other servers may have it too. Raises OSError."""
    family, kind, protocol, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[
        0
    ]
    bound = socket.socket(family, kind, protocol)
    try:
        if reuse:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        _bind(bound, where)
        # Not before: it would let this server take a port that the processes of another one share.
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    except BaseException:
        bound.close()
        raise
    taken = bound.getsockname()[1]
    return Claimed(Claim(f"{f'[{host}]' if ':' in host else host}:{taken}", taken), bound.close)


def _bind(bound: socket.socket, where: tuple[Any, ...]) -> None:
    try:
        bound.bind(where)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        # What is left of the connections of a server that has gone keeps nobody from the port; one that listens still does.
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(where)
